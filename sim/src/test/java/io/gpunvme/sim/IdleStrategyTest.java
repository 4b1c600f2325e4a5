package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class IdleStrategyTest {
  private static final long NOTHING_DUE = Long.MAX_VALUE;

  @ParameterizedTest(name = "quiet for {0} µs: sleeps {1} µs")
  @CsvSource({
    "0, 0",
    "99, 0",
    "100, 2",
    "640, 10",
    "6400, 100",
    "16384, 256",
    "262144, 256",
    "524288, 512",
    "716800, 700",
    "14000000, 700",
    "3600000000, 2500",
  })
  void sleepsGrowWithTheQuietTime(long quietMicros, long sleepMicros) {
    assertThat(IdleStrategy.sleepNanos(quietMicros * 1000, NOTHING_DUE))
        .isEqualTo(sleepMicros * 1000);
  }

  /** A sleep takes longer than asked for, so it must end well before. */
  @Test
  void nothingDueIsSleptThrough() {
    long quiet = 10_000_000_000L;
    for (long neededIn = 0; neededIn < 3_000_000; neededIn += 10_000) {
      long sleep = IdleStrategy.sleepNanos(quiet, neededIn);
      if (neededIn < 200_000) {
        assertThat(sleep).as("due in %d ns", neededIn).isZero();
      } else {
        assertThat(sleep).as("due in %d ns", neededIn).isBetween(1L, neededIn - 100_000);
      }
    }
    assertThat(IdleStrategy.sleepNanos(quiet, 600_000)).isEqualTo(500_000);
    assertThat(IdleStrategy.sleepNanos(quiet, 1_200_000)).isEqualTo(700_000);
  }
}
