package io.gpunvme.storage.path.set;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.transfer.Direction;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Who is told slow, by made-up times. */
class SlowMembersTest {
  private static final long MICRO = 1_000;
  private static final long LONG = 8 << 20;
  private static final int SHORT = 4096;

  private final List<String> told = new ArrayList<>();
  private long now = -7;

  private SlowMembers members(int count) {
    return members(count, 0);
  }

  private SlowMembers members(int count, long confirmedNanos) {
    return new SlowMembers(
        count,
        confirmedNanos,
        (member, slow, times, nanos, others) ->
            told.add(
                "%d %s %.1f %d %d"
                    .formatted(
                        member, slow ? "slow" : "well", times, nanos / MICRO, others / MICRO)));
  }

  private void round(SlowMembers set, long bytes, long... micros) {
    for (int m = 0; m < micros.length; m++) {
      set.ended(m, Direction.READ, bytes, micros[m] * MICRO, now);
    }
  }

  private void rounds(int count, SlowMembers set, long bytes, long... micros) {
    for (int i = 0; i < count; i++) {
      round(set, bytes, micros);
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {512, SHORT, 128 << 10, 1 << 20, LONG, 1L << 30})
  void oneThatBecomesSlowIsToldOnceAndSoIsItsRecovery(long bytes) {
    SlowMembers set = members(4);
    rounds(20, set, bytes, 100, 110, 90, 105);
    assertThat(told).isEmpty();

    rounds(50, set, bytes, 100, 5000, 90, 105);
    assertThat(told).hasSize(1);
    assertThat(told.getFirst()).startsWith("1 slow ").endsWith(" 100");
    assertThat(set.isSlow(1)).isTrue();
    assertThat(set.isSlow(1, Direction.READ, bytes)).isTrue();
    assertThat(set.isSlow(0)).isFalse();

    rounds(20, set, bytes, 100, 110, 90, 105);
    assertThat(told).hasSize(2);
    assertThat(told.getLast()).startsWith("1 well 1.").endsWith(" 100");
    assertThat(set.isSlow(1)).isFalse();
  }

  @Test
  void oneThatIsSlowFromTheBeginningIsTold() {
    SlowMembers set = members(2);
    int needed = SlowMembers.ENOUGH - 1 + SlowMembers.CONFIRMED;
    rounds(needed - 1, set, LONG, 1000, 4000);
    assertThat(told).isEmpty();
    round(set, LONG, 1000, 4000);
    assertThat(told).containsExactly("1 slow 4.0 4000 1000");
  }

  @Test
  void onePauseMakesNobodySlow() {
    SlowMembers set = members(3);
    for (int i = 0; i < 100; i++) {
      round(set, SHORT, 100, i % 10 == 0 ? 1_000_000 : 100, 100);
    }
    assertThat(told).isEmpty();
  }

  @Test
  void whatIsOverSoonIsNotTold() {
    SlowMembers set = members(3, 1000);
    rounds(50, set, LONG, 1000, 9000, 1000);
    now += 999;
    rounds(50, set, LONG, 1000, 9000, 1000);
    assertThat(told).isEmpty();
    rounds(50, set, LONG, 1000, 1000, 1000);
    now += 1;
    rounds(50, set, LONG, 1000, 9000, 1000);
    now += 999;
    round(set, LONG, 1000, 9000, 1000);
    assertThat(told).isEmpty();
    now += 1;
    round(set, LONG, 1000, 9000, 1000);
    assertThat(told).hasSize(1);
  }

  @Test
  void aBusyMomentMakesNobodySlow() {
    SlowMembers set = members(3);
    for (int i = 0; i < 100; i++) {
      round(set, SHORT, 100, i % 50 > 45 ? 10_000 : 100, 100);
    }
    assertThat(told).isEmpty();
  }

  @Test
  void whatIsSlowerByLittleIsNotTold() {
    SlowMembers set = members(3);
    rounds(50, set, SHORT, 2, 490, 2);
    rounds(50, set, LONG, 1000, 2900, 1000);
    assertThat(told).isEmpty();
    rounds(50, set, SHORT, 2, 510, 2);
    assertThat(told).hasSize(1);
  }

  @Test
  void allThatBecomeSlowTogetherAreNotTold() {
    SlowMembers set = members(3);
    rounds(20, set, LONG, 1000, 1000, 1000);
    rounds(50, set, LONG, 9000, 9000, 9000);
    assertThat(told).isEmpty();
  }

  @Test
  void betweenTheTwoLimitsAVerdictStays() {
    SlowMembers set = members(3);
    rounds(20, set, LONG, 1000, 9000, 1000);
    rounds(50, set, LONG, 1000, 1700, 1000);
    assertThat(told).hasSize(1);
    assertThat(set.isSlow(1)).isTrue();
    rounds(50, set, LONG, 1000, 1400, 1000);
    assertThat(told).hasSize(2);
    rounds(50, set, LONG, 1000, 2900, 1000);
    assertThat(told).hasSize(2);
  }

  @Test
  void requestsOfOtherSizesAndDirectionsAreNotCompared() {
    SlowMembers set = members(2);
    for (int i = 0; i < 50; i++) {
      set.ended(0, Direction.READ, SHORT, 10 * MICRO, now);
      set.ended(1, Direction.READ, LONG, 10_000 * MICRO, now);
      set.ended(1, Direction.WRITE, SHORT, 10_000 * MICRO, now);
    }
    assertThat(told).isEmpty();
  }

  @Test
  void twoSlowOnesOfEightAreBothTold() {
    SlowMembers set = members(8);
    rounds(20, set, LONG, 1000, 1000, 1000, 8000, 1000, 1000, 9000, 1000);
    assertThat(told).hasSize(2);
    assertThat(set.isSlow(3) && set.isSlow(6)).isTrue();
  }

  @Test
  void whatARequestTakesIsKnownByTheByte() {
    SlowMembers set = members(2);
    assertThat(set.nanos(0, Direction.READ, LONG)).isZero();
    rounds(5, set, LONG, 1000, 2000);
    assertThat(set.nanos(0, Direction.READ, LONG + LONG / 2)).isEqualTo(1500.0 * MICRO);
    assertThat(set.nanos(1, Direction.READ, LONG)).isEqualTo(2000.0 * MICRO);
  }
}
