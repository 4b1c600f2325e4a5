package io.gpunvme.gpu.accel;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class StockTest {
  private final List<Object> made = new ArrayList<>();
  private final List<Object> freed = new ArrayList<>();
  private final Stock<Object> stock = new Stock<>(2, 3, this::make, freed::add);

  private Object make() {
    made.add(new Object());
    return made.getLast();
  }

  @Test
  void whatWasFilledIsTakenAndNothingElseIsMade() {
    assertThat(stock.isLow()).isTrue();
    assertThat(stock.poll()).isNull();
    stock.fill();
    stock.fill();
    assertThat(stock.isLow()).isFalse();
    assertThat(made).hasSize(2);
    assertThat(List.of(stock.poll(), stock.poll())).containsExactlyInAnyOrderElementsOf(made);
    assertThat(stock.poll()).isNull();
    assertThat(made).hasSize(2);
  }

  @Test
  void whatIsGivenBackIsTakenAgainUpToSome() {
    for (int i = 0; i < 5; i++) {
      stock.give("piece " + i);
    }
    assertThat(freed).containsExactly("piece 3", "piece 4");
    assertThat(stock.poll()).isEqualTo("piece 2");
    stock.fill();
    assertThat(made).isEmpty();
  }
}
