package io.gpunvme.storage.path.set;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

/** What counts as recent, by a made-up clock. */
class RecentRateTest {
  private static final long SECOND = 1_000_000_000;
  private static final long TENTH = SECOND / 10;

  @Test
  void theLastSecondCounts() {
    RecentRate rate = new RecentRate(5);
    assertThat(rate.gigabytesPerSecond(5 + SECOND)).isZero();
    for (int i = 1; i <= 50; i++) {
      rate.add(5 + i * TENTH, TENTH, TENTH);
    }
    assertThat(rate.gigabytesPerSecond(5 + 5 * SECOND)).isCloseTo(1, within(0.15));
    assertThat(rate.gigabytesPerSecond(5 + 7 * SECOND)).isZero();
    rate.add(5 + 9 * SECOND, SECOND / 2, TENTH);
    assertThat(rate.gigabytesPerSecond(5 + 9 * SECOND)).isCloseTo(0.5, within(0.1));
  }

  @Test
  void ofALongRequestTheLastSecondCounts() {
    RecentRate rate = new RecentRate(0);
    rate.add(10 * SECOND, 20 * SECOND, 10 * SECOND);
    assertThat(rate.gigabytesPerSecond(10 * SECOND)).isCloseTo(2, within(0.1));
  }
}
