package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** Pieces of a ring: inside, apart from each other, and there again once given back. */
class BounceRingTest {
  private final BounceRing ring = new BounceRing(Arena.ofAuto().allocate(BounceRing.BYTES, 64));

  @Test
  void allOfItCanBeTakenAndIsThereAgain() {
    for (int round = 0; round < 3; round++) {
      Deque<Long> taken = new ArrayDeque<>();
      for (long left = BounceRing.BYTES; left > 0; left -= BounceRing.CHUNK) {
        long at = ring.take(BounceRing.CHUNK);
        assertThat(ring.offset(at)).isEqualTo(BounceRing.BYTES - left);
        taken.add(at);
      }
      assertThat(ring.take(1)).isEqualTo(BounceRing.NONE);
      ring.giveBack(taken.remove(), BounceRing.CHUNK);
      long again = ring.take(1);
      assertThat(ring.offset(again)).isZero();
      ring.takeBack(again);
      for (long at : taken) {
        ring.giveBack(at, BounceRing.CHUNK);
      }
    }
  }

  @Test
  void piecesNeverOverlapAndNeverLeaveTheRing() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    Deque<long[]> taken = new ArrayDeque<>();
    int refused = 0;
    for (int step = 0; step < 20_000; step++) {
      String what = "seed " + seed + " step " + step;
      if (random.nextInt(5) < 2 && !taken.isEmpty()) {
        long[] oldest = taken.remove();
        ring.giveBack(oldest[0], oldest[1]);
        continue;
      }
      long bytes = 1 + random.nextLong(BounceRing.CHUNK);
      long at = ring.take(bytes);
      if (at == BounceRing.NONE) {
        refused++;
        assertThat(taken).as(what).isNotEmpty();
        continue;
      }
      long from = ring.offset(at);
      assertThat(from + bytes).as(what).isLessThanOrEqualTo(BounceRing.BYTES);
      for (long[] other : taken) {
        long start = ring.offset(other[0]);
        assertThat(from + bytes <= start || start + other[1] <= from).as(what).isTrue();
      }
      if (random.nextInt(10) == 0) {
        ring.takeBack(at);
      } else {
        taken.add(new long[] {at, bytes});
      }
    }
    assertThat(refused).as("full now and then").isPositive();
  }
}
