package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** The heap of waiting commands against a sorted list. */
class EngineSchedulerTest {
  private final MemorySegment memory = Arena.ofAuto().allocate(64, 8);
  private final DmaSpace dma = new DmaSpace(48, 1, region -> {});
  private final RemoteChannels channels = new RemoteChannels(dma, Arena.ofAuto(), failure -> {});

  private SimCommand command(int cid, long due) {
    SimCommand c = new SimCommand(dma, channels, new DmaRegion(0, 64, memory, true));
    c.cid = cid;
    c.due = due;
    return c;
  }

  @Test
  void takesTheEarliestAndKeepsTheOrderOfEquals() {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    Random random = new Random(seed);
    CommandScheduler scheduler = new CommandScheduler();
    List<SimCommand> model = new ArrayList<>();
    // Times around the overflow of nanoTime.
    long now = Long.MAX_VALUE - 5000;
    for (int i = 0; i < 50_000; i++) {
      String step = "seed " + seed + " step " + i;
      switch (random.nextInt(5)) {
        case 0, 1 -> {
          SimCommand c = command(i & 0xFFFF, now + random.nextInt(50) - 5);
          scheduler.add(c);
          model.add(c);
        }
        case 2 -> {
          if (!model.isEmpty()) {
            SimCommand c = model.remove(random.nextInt(model.size()));
            scheduler.remove(c);
            scheduler.remove(c);
          }
        }
        case 3 -> {
          SimCommand earliest = earliest(model, now);
          SimCommand got = scheduler.takeDue(now);
          assertThat(got).as(step).isSameAs(earliest);
          model.remove(got);
        }
        default -> now += random.nextInt(10);
      }
      assertThat(scheduler.isEmpty()).isEqualTo(model.isEmpty());
      if (!model.isEmpty()) {
        long next = Long.MAX_VALUE;
        for (SimCommand c : model) {
          next = Math.min(next, c.due - now);
        }
        assertThat(scheduler.untilNext(now)).as(step).isEqualTo(next);
      }
    }
  }

  private static SimCommand earliest(List<SimCommand> model, long now) {
    SimCommand best = null;
    for (SimCommand c : model) {
      if (c.due - now <= 0 && (best == null || c.due - best.due < 0)) {
        best = c;
      }
    }
    return best;
  }
}
