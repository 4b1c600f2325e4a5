package io.gpunvme.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class CloseAllTest {
  private final List<Integer> done = new ArrayList<>();

  private void close(int n) throws IOException {
    done.add(n);
    switch (n) {
      case 2 -> throw new IOException("two");
      case 3 -> throw new AssertionError("three");
      case 4 -> throw new IllegalStateException("four");
      default -> {}
    }
  }

  @Test
  void allAreClosedAndTheFirstFailureIsThrown() {
    assertThatThrownBy(() -> CloseAll.each(List.of(1, 2, 3, 4, 5), this::close))
        .isInstanceOf(IOException.class)
        .hasMessage("two")
        .satisfies(
            e ->
                assertThat(e.getSuppressed())
                    .extracting(Throwable::getMessage)
                    .containsExactly("three", "four"));
    assertThat(done).containsExactly(1, 2, 3, 4, 5);
  }

  @Test
  void thoseThatAreThereAreClosedInTheirOrder() {
    assertThatThrownBy(() -> CloseAll.all(() -> close(2), null, () -> close(4), () -> close(1)))
        .isInstanceOf(IllegalStateException.class)
        .hasRootCauseMessage("two");
    assertThat(done).containsExactly(2, 4, 1);
    CloseAll.all(null, () -> close(5));
    assertThat(done).containsExactly(2, 4, 1, 5);
  }

  @Test
  void errorsAndUncheckedExceptionsStayThemselves() throws IOException {
    assertThatThrownBy(() -> CloseAll.each(List.of(3), this::close))
        .isInstanceOf(AssertionError.class);
    assertThatThrownBy(() -> CloseAll.each(List.of(4), this::close))
        .isInstanceOf(IllegalStateException.class);
    CloseAll.each(List.of(1, 5), this::close);
  }

  @Test
  void whatFailsAfterAFailureIsSuppressedUnderIt() {
    IllegalArgumentException failure = new IllegalArgumentException("before");
    CloseAll.after(failure, List.of(2, 1, 4), this::close);
    CloseAll.after(failure, () -> close(3));
    CloseAll.after(
        failure,
        () -> {
          throw failure;
        });
    assertThat(done).containsExactly(2, 1, 4, 3);
    assertThat(failure.getSuppressed())
        .extracting(Throwable::getMessage)
        .containsExactly("two", "four", "three");
  }

  @Test
  void theNewestIsClosedFirst() {
    List<AutoCloseable> opened =
        new ArrayList<>(List.of(() -> close(1), () -> close(4), () -> close(2), () -> close(5)));
    assertThatThrownBy(() -> CloseAll.newestFirst(opened))
        .isInstanceOf(IllegalStateException.class)
        .hasCauseInstanceOf(IOException.class);
    assertThat(done).containsExactly(5, 2, 4, 1);
    assertThat(opened).isEmpty();
  }

  @Test
  void stepsOfSeveralKinds() {
    CloseAll steps = new CloseAll();
    steps.run(() -> close(1));
    assertThat(steps.failure()).isNull();
    steps.run(() -> close(4));
    assertThat(steps.failure()).hasMessage("four");
    assertThatThrownBy(steps::end).hasMessage("four");
  }
}
