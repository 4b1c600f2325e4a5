package io.gpunvme.base;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.api.Test;

class AlignTest {
  @Test
  void roundsUpAndDown() {
    assertThat(Align.up(0, 8)).isZero();
    assertThat(Align.up(1, 8)).isEqualTo(8);
    assertThat(Align.up(8, 8)).isEqualTo(8);
    assertThat(Align.down(7, 8)).isZero();
    assertThat(Align.down(15, 8)).isEqualTo(8);
    assertThat(Align.is(16, 8)).isTrue();
    assertThat(Align.is(12, 8)).isFalse();
  }

  @Test
  void nothingFromOutsideWrapsAround() {
    assertThat(Align.upExact(Long.MAX_VALUE - 7, 8)).isEqualTo(Long.MAX_VALUE - 7);
    assertThatThrownBy(() -> Align.upExact(Long.MAX_VALUE - 6, 8))
        .isInstanceOf(ArithmeticException.class);
  }

  @Test
  void powersOfTwo() {
    assertThat(Align.isPowerOfTwo(1)).isTrue();
    assertThat(Align.isPowerOfTwo(1L << 62)).isTrue();
    assertThat(Align.isPowerOfTwo(0)).isFalse();
    assertThat(Align.isPowerOfTwo(-8)).isFalse();
    assertThat(Align.isPowerOfTwo(12)).isFalse();
  }
}
