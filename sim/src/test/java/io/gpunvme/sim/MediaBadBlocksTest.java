package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.BitSet;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** {@link LbaRangeSet} against a bit set. */
class MediaBadBlocksTest {
  private static final int BLOCKS = 200;
  private static final int STEPS = 20_000;

  @Test
  void itEqualsABitSet() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    LbaRangeSet set = new LbaRangeSet();
    BitSet model = new BitSet();
    for (int step = 0; step < STEPS; step++) {
      int from = random.nextInt(BLOCKS);
      int count = 1 + random.nextInt(random.nextInt(20) + 1);
      switch (random.nextInt(3)) {
        case 0 -> {
          set.add(from, count);
          model.set(from, from + count);
        }
        case 1 -> {
          set.remove(from, count);
          model.clear(from, from + count);
        }
        default -> {
          boolean expected = !model.get(from, from + count).isEmpty();
          assertThat(set.intersects(from, count))
              .as("seed %d step %d blocks %d+%d in %s", seed, step, from, count, model)
              .isEqualTo(expected);
        }
      }
    }
  }

  @Test
  void clearing() {
    LbaRangeSet set = new LbaRangeSet();
    set.add(5, 5);
    assertThat(set.intersects(9, 1)).isTrue();
    assertThat(set.intersects(10, 1)).isFalse();
    set.clear();
    assertThat(set.intersects(0, 100)).isFalse();
  }
}
