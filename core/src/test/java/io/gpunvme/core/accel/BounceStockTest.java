package io.gpunvme.core.accel;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class BounceStockTest {
  private static final long SMALL = 64 << 10;
  private static final long LARGE = 1 << 20;

  /** Told apart by identity. */
  private static final class Piece {
    private final long bytes;

    private Piece(long bytes) {
      this.bytes = bytes;
    }
  }

  private final List<Piece> allocated = new ArrayList<>();
  private final List<Piece> freed = new ArrayList<>();
  private final BounceStock<Piece> stock =
      new BounceStock<>(this::allocate, p -> p.bytes, freed::add);

  private Piece allocate(long bytes) {
    allocated.add(new Piece(bytes));
    return allocated.getLast();
  }

  @Test
  void whatWasFilledIsTakenWithoutAllocating() {
    List<Piece> between = new ArrayList<>();
    for (int round = 0; round < 2; round++) {
      stock.fill(
          bytes -> {
            between.add(new Piece(bytes));
            return between.getLast();
          });
      assertThat(between).as("a full stock stays as it is").hasSize(8);
    }
    for (int i = 0; i < 4; i++) {
      assertThat(stock.take(4096).bytes).isEqualTo(SMALL);
      assertThat(stock.take(SMALL + 1).bytes).isEqualTo(LARGE);
    }
    assertThat(allocated).isEmpty();
    assertThat(stock.take(LARGE).bytes).isEqualTo(LARGE);
    assertThat(allocated).hasSize(1);
  }

  @Test
  void whatIsGivenBackIsTakenAgain() {
    Piece piece = stock.take(SMALL);
    stock.give(piece);
    assertThat(stock.take(1)).isSameAs(piece);
    assertThat(allocated).hasSize(1);
  }

  @Test
  void longOnesAreNotKept() {
    Piece piece = stock.take(LARGE + 1);
    assertThat(piece.bytes).isEqualTo(LARGE + 1);
    stock.give(piece);
    assertThat(freed).containsExactly(piece);
  }

  @Test
  void noMoreThanSomeAreKept() {
    List<Piece> taken = new ArrayList<>();
    for (int i = 0; i < 20; i++) {
      taken.add(stock.take(LARGE));
    }
    taken.forEach(stock::give);
    assertThat(freed).hasSize(4).doesNotHaveDuplicates();
  }
}
