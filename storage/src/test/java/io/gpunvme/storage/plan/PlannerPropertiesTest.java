package io.gpunvme.storage.plan;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.base.Align;
import io.gpunvme.base.InvalidRequestException;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/** What holds for every plan, on random requests that are small enough to be carried out. */
class PlannerPropertiesTest {
  private static final int ROUNDS = 3000;
  private static final int MOST_RANGES = 24;
  private static final int MOST_TARGETS = 3;

  @Test
  void everyPlanDoesWhatWasAskedForAndKeepsToItsOptions() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    int direct = 0;
    int scattered = 0;
    for (int round = 0; round < ROUNDS; round++) {
      PlanOptions options = options(random);
      byte[] source = Simulation.source((int) options.sourceSize());
      Ranges ranges = ranges(random, options);
      try {
        Simulation simulation = new Simulation(source, ranges, options);
        simulation.check();
        direct += simulation.plan().directIos();
        scattered += simulation.plan().pieces() > simulation.plan().ios() ? 1 : 0;
      } catch (AssertionError | RuntimeException e) {
        throw new AssertionError("seed " + seed + ", round " + round + ", " + options, e);
      }
    }
    assertThat(direct).as("direct I/Os, seed %d", seed).isGreaterThan(ROUNDS / 2);
    assertThat(scattered).as("plans that scatter, seed %d", seed).isGreaterThan(ROUNDS / 4);
  }

  private static PlanOptions options(SplittableRandom random) {
    long alignment = 1L << random.nextInt(6);
    long size = random.nextInt(4) == 0 ? random.nextLong(40) : random.nextLong(1500);
    Stripes stripes =
        random.nextBoolean()
            ? Stripes.NONE
            : new Stripes(1 + random.nextInt(4), alignment * (1 + random.nextInt(5)));
    return PlanOptions.of(size)
        .alignment(alignment)
        .targetAlignment(1L << random.nextInt(7))
        .maxBytes(alignment + random.nextLong(random.nextBoolean() ? 100 : 1000))
        .gap(random.nextBoolean() ? 0 : random.nextLong(120))
        .stripes(stripes)
        .order(random.nextBoolean() ? IoOrder.OFFSET : IoOrder.GIVEN)
        .build();
  }

  /** Ranges that overlap in the source as they like, and never in a target. */
  private static Ranges ranges(SplittableRandom random, PlanOptions options) {
    long[] ends = new long[MOST_TARGETS];
    boolean aligned = random.nextInt(3) == 0;
    boolean oneAfterTheOther = random.nextInt(3) == 0;
    long step = Math.max(options.alignment(), options.targetAlignment());
    long longest = 1 + random.nextLong(Math.max(1, options.sourceSize()));
    long next = 0;
    List<long[]> all = new ArrayList<>();
    for (int i = random.nextInt(MOST_RANGES); i > 0; i--) {
      long offset = oneAfterTheOther ? next : random.nextLong(options.sourceSize() + 1);
      if (aligned) {
        offset = Align.down(offset, step);
      }
      long length = random.nextLong(Math.min(longest, options.sourceSize() - offset) + 1);
      next = offset + length;
      int target = random.nextInt(MOST_TARGETS);
      long at = ends[target];
      if (random.nextBoolean()) {
        // As far from a multiple of the alignment as in the source.
        at += offset - at & step - 1;
      } else if (random.nextInt(4) == 0) {
        at += random.nextInt(50);
      }
      ends[target] = at + length;
      all.add(new long[] {offset, length, target, at});
    }
    Ranges.Builder builder = Ranges.builder();
    while (!all.isEmpty()) {
      long[] one = all.remove(oneAfterTheOther ? 0 : random.nextInt(all.size()));
      builder.add(one[0], one[1], (int) one[2], one[3]);
    }
    return builder.build();
  }

  @Test
  void overlapsInTargetsAreFoundExactly() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    int refused = 0;
    for (int round = 0; round < ROUNDS; round++) {
      boolean[][] used = new boolean[MOST_TARGETS][200];
      boolean overlap = false;
      Ranges.Builder builder = Ranges.builder();
      for (int i = 1 + random.nextInt(6); i > 0; i--) {
        int target = random.nextInt(MOST_TARGETS);
        int at = random.nextInt(150);
        int length = random.nextInt(20);
        builder.add(random.nextInt(50), length, target, at);
        for (int b = at; b < at + length; b++) {
          overlap |= used[target][b];
          used[target][b] = true;
        }
      }
      boolean found = isRefused(builder.build());
      assertThat(found).as("seed %d, round %d", seed, round).isEqualTo(overlap);
      refused += found ? 1 : 0;
    }
    assertThat(refused).as("refused, seed %d", seed).isBetween(1, ROUNDS - 1);
  }

  private static boolean isRefused(Ranges ranges) {
    try {
      Planner.plan(ranges, PlanOptions.of(100).build());
      return false;
    } catch (InvalidRequestException e) {
      assertThat(e).hasMessageContaining("overlaps in the target");
      return true;
    }
  }

  @Test
  void stripesThereAndBackAgain() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    for (int round = 0; round < ROUNDS; round++) {
      Stripes stripes = new Stripes(1 + random.nextInt(9), 1 + random.nextLong(1L << 40));
      long offset = random.nextLong(Long.MAX_VALUE);
      String at = "seed " + seed + ", " + stripes + ", offset " + offset;
      int member = stripes.member(offset);
      long place = stripes.memberOffset(offset);
      assertThat(member).as(at).isBetween(0, stripes.members() - 1);
      assertThat(stripes.offset(member, place)).as(at).isEqualTo(offset);
      long sum = 0;
      for (int m = 0; m < stripes.members(); m++) {
        sum += stripes.memberSize(m, offset);
      }
      assertThat(sum).as(at).isEqualTo(offset);
      assertThat(stripes.memberSize(member, offset)).as(at).isEqualTo(place);
    }
  }

  @Test
  void aMillionRangesCanBePlanned() {
    SplittableRandom random = new SplittableRandom(1);
    int count = 1_000_000;
    long size = 1L << 40;
    Ranges.Builder builder = Ranges.builder();
    for (int i = 0; i < count; i++) {
      builder.add(random.nextLong(size - 4096), 1 + random.nextLong(4096));
    }
    Ranges ranges = builder.build();

    Plan plan = Planner.plan(ranges, PlanOptions.of(size).build());

    assertThat(plan.bytesAsked()).isEqualTo(ranges.targetEnd(0));
    assertThat(plan.ios()).isBetween(count / 2, 2 * count);
  }
}
