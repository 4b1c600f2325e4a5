package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.transfer.Direction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Reads and writes in a given proportion. */
class MixTest {
  private static long reads(Mix mix, int from, int end) {
    return IntStream.range(from, end).filter(i -> mix.direction(i) == Direction.READ).count();
  }

  @ParameterizedTest
  @CsvSource({"100, 1", "0, 1", "50, 2", "70, 10", "75, 4", "33, 100", "99, 100"})
  void multiplesOfItsUnitHaveItExactly(int percent, int unit) {
    Mix mix = new Mix(percent);
    assertThat(mix.unit()).isEqualTo(unit);
    assertThat(mix.writes()).isEqualTo(percent < 100);
    for (int n = unit; n <= 300; n += unit) {
      assertThat(reads(mix, 0, n) * 100).isEqualTo((long) n * percent);
    }
  }

  @Test
  void itIsTheSameInAnyPart() {
    for (int percent = 0; percent <= 100; percent++) {
      for (int from = 0; from < 200; from++) {
        double reads = reads(new Mix(percent), from, from + 50);
        assertThat(reads).isBetween(percent / 2.0 - 1, percent / 2.0 + 1);
      }
    }
  }

  @Test
  void onlyPercentages() {
    for (int none : new int[] {-1, 101}) {
      assertThatExceptionOfType(InvalidRequestException.class)
          .isThrownBy(() -> new Mix(none))
          .withMessageContaining("0 to 100");
    }
  }
}
