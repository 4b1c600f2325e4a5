package io.gpunvme.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.bench.BindingsChild.MissingException;
import io.gpunvme.tools.bench.BenchException;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@link BindingsChild}, with shells in place of the programs. */
class BindingsChildTest {
  private static final Duration LONG = Duration.ofMinutes(1);
  private static final Duration SHORT = Duration.ofMillis(200);

  /** Waits for input that does not come, as a program that hangs. */
  private static final String HANG = "exec 0<>/dev/null; exec tail -f /dev/null";

  private static BindingsChild shell(String script, Duration deadline) throws MissingException {
    return BindingsChild.start("c", List.of("/bin/sh", "-c", script), Map.of(), deadline);
  }

  @Test
  void answersAreNumbers() throws MissingException {
    try (BindingsChild child =
        shell(
            "echo ready; read a; echo 12.5; read b; echo 1 2; read c; [ $a$b$c = xyend ]", LONG)) {
      assertThat(child.ask("x")).containsExactly(12.5);
      assertThat(child.ask("y")).containsExactly(1, 2);
    }
  }

  @Test
  void variablesAreSetAndTakenAway() throws MissingException {
    List<String> command =
        List.of("/bin/sh", "-c", "echo ready; read a; echo ${A}${PATH+0}; read b");
    try (BindingsChild child =
        BindingsChild.start("c", command, Map.of("A", "7", "PATH", ""), LONG)) {
      assertThat(child.ask("x")[0]).isIn(7.0, 70.0);
    }
  }

  @Test
  void whatIsMissingIsSaid() {
    assertThatThrownBy(() -> shell("echo missing a thing", LONG))
        .isInstanceOf(MissingException.class)
        .hasMessage("a thing");
    assertThatThrownBy(() -> BindingsChild.start("c", List.of("/nowhere/bindings"), Map.of(), LONG))
        .isInstanceOf(MissingException.class)
        .hasMessageContaining("/nowhere/bindings");
  }

  @ParameterizedTest
  @ValueSource(strings = {"error wrong data", "0", "-1", "NaN", "Infinity", "12x", ""})
  void whatIsNoResultFailsAndIsNamed(String answer) throws MissingException {
    BindingsChild child = shell("echo ready; read a; echo '" + answer + "'; read b", LONG);

    assertThatThrownBy(() -> child.ask("read"))
        .isInstanceOf(BenchException.class)
        .hasMessageContaining("c: the program ")
        .hasMessageContaining("'" + answer + "'");
    assertThatCode(child::close).doesNotThrowAnyException();
  }

  @Test
  void theEndInsteadOfAnAnswerFails() throws MissingException {
    BindingsChild child = shell("echo ready; read a; exit 7", LONG);

    assertThatThrownBy(() -> child.ask("read")).hasMessageContaining("with code 7");
    assertThatThrownBy(() -> shell("exit 3", LONG))
        .isInstanceOf(BenchException.class)
        .hasMessageContaining("with code 3");
  }

  @Test
  void aHangingOneIsKilledAndNamed() throws MissingException {
    BindingsChild child = shell("echo ready; read a; " + HANG, SHORT);

    assertThatThrownBy(() -> child.ask("read"))
        .isInstanceOf(BenchException.class)
        .hasMessageContaining("c: the program took more than")
        .hasMessageContaining("to read");
    assertThat(child.ended()).isTrue();
    assertThatThrownBy(() -> shell(HANG, SHORT)).hasMessageContaining("to get ready");
  }

  @Test
  void oneThatDoesNotEndIsKilledAndNamed() throws MissingException {
    BindingsChild child = shell("echo ready; " + HANG, SHORT);

    assertThatThrownBy(child::close).hasMessageContaining("c: the program did not end");
    assertThat(child.ended()).isTrue();
  }

  @Test
  void oneThatFailsAtItsEndSaysWhy() throws MissingException {
    BindingsChild child = shell("echo ready; read a; echo error closing; exit 1", LONG);

    assertThatThrownBy(child::close).hasMessageContaining("ended with code 1 error closing");
  }
}
