package io.gpunvme.sim;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.AdminOpcode;
import io.gpunvme.nvme.spec.Csts;
import io.gpunvme.nvme.spec.FeatureId;
import io.gpunvme.nvme.spec.Sqe;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.HashSet;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Valid commands with some of their bits, and of the data they point to, changed at random: there
 * is always an answer, it has a name, and the controller lives on.
 */
class AdminCommandFuzzTest {
  private static final int COMMANDS = 60_000;
  private static final int COMMANDS_PER_LAB = 500;
  private static final int POLLS = 3;
  private static final int DATA_BYTES = 256;
  private static final int LIST_BYTES = 64;

  @ParameterizedTest
  @ValueSource(booleans = {true, false})
  void everyCommandIsAnswered(boolean strict) {
    long seed = Long.getLong("gpunvme.seed", System.nanoTime());
    SplittableRandom random = new SplittableRandom(seed);
    int errors = 0;
    int done = 0;
    while (done < COMMANDS) {
      // Time stands still, or a keep alive timer that a command happens to set ends the controller.
      try (CommandLab lab = new CommandLab(b -> b.strict(strict).aerl(255), new RawClock())) {
        Set<Integer> held = new HashSet<>();
        for (int i = 0; i < COMMANDS_PER_LAB; i++) {
          String what = "seed %d command %d".formatted(seed, done);
          if (!usable(lab, what)) {
            break;
          }
          boolean failed = one(lab, held, random, what);
          errors += failed ? 1 : 0;
          done++;
        }
      }
    }
    assertThat(errors).as("seed %d: of both kinds", seed).isBetween(COMMANDS / 10, COMMANDS);
  }

  /** The mutations delete queues, too. */
  private static boolean usable(CommandLab lab, String what) {
    MemorySegment flush = lab.flush();
    Sqe.nsid(flush, 0, Sqe.NSID_ALL);
    int cid = lab.queue.push(flush);
    lab.queue.ring();
    for (int i = 0; i < POLLS; i++) {
      lab.host.controller.poll();
      RawQueue.Completion c = lab.queue.poll();
      if (c != null) {
        assertThat(c.cid()).as("%s: before it", what).isEqualTo(cid);
        return true;
      }
    }
    return false;
  }

  /** Returns whether the command failed. */
  private static boolean one(
      CommandLab lab, Set<Integer> held, SplittableRandom random, String what) {
    Example example = Example.values()[random.nextInt(Example.values().length)];
    MemorySegment sqe = fresh(lab, example);
    mutate(sqe, random, Sqe.SIZE);
    if (random.nextInt(4) == 0) {
      mutate(lab.memory(), random, DATA_BYTES);
      mutate(lab.list.memory(), random, LIST_BYTES);
      keepOffRings(lab, lab.memory(), 0, DATA_BYTES);
      keepOffRings(lab, lab.list.memory(), 0, LIST_BYTES);
    }
    keepOffRings(lab, sqe, Sqe.DPTR1, Sqe.DPTR1 + 16);
    RawQueue q = example.admin ? lab.host.admin : lab.queue;
    int cid = q.push(sqe);
    q.ring();
    for (int i = 0; i < POLLS; i++) {
      lab.host.controller.poll();
      RawQueue.Completion c = q.poll();
      if (c != null && c.cid() != cid) {
        assertThat(held.remove(c.cid())).as("%s: an event or an abort", what).isTrue();
      } else if (c != null) {
        assertThat(StatusCode.of(c.status())).as(what).isNotNull();
        assertThat(lab.host.csts().isSet(Csts.CFS)).as(what).isFalse();
        return c.status() != 0;
      }
    }
    boolean waits = example.admin && Sqe.opcode(sqe, 0) == AdminOpcode.ASYNC_EVENT_REQUEST;
    assertThat(waits)
        .as(
            "%s %s %s, CSTS %s, fatal %s",
            what, example, Sqe.describe(sqe, 0), lab.host.csts(), lab.host.controller.fatalReason())
        .isTrue();
    held.add(cid);
    return false;
  }

  /** The example without what it does to the controller beforehand. */
  private static MemorySegment fresh(CommandLab lab, Example example) {
    return switch (example) {
      case DELETE_CQ -> RawHost.deleteCq(2);
      case ATTACH -> lab.attach(1, 0);
      case SET_QUEUES -> lab.setFeature(FeatureId.NUMBER_OF_QUEUES, 0x10001);
      default -> example.command.apply(lab);
    };
  }

  /**
   * Addresses of rings lead nowhere: the controller may write where a command tells it to, and an
   * overwritten completion queue says nothing about the controller.
   */
  private static void keepOffRings(CommandLab lab, MemorySegment memory, long from, long to) {
    for (long at = from; at < to; at += Long.BYTES) {
      if (isInRing(lab, memory.get(ValueLayout.JAVA_LONG, at))) {
        memory.set(ValueLayout.JAVA_LONG, at, CommandLab.NOWHERE);
      }
    }
  }

  private static boolean isInRing(CommandLab lab, long address) {
    for (RawQueue q : new RawQueue[] {lab.host.admin, lab.queue}) {
      for (DmaBuffer ring : new DmaBuffer[] {q.sq, q.cq}) {
        if (Long.compareUnsigned(address - ring.busAddress(0), ring.size()) < 0) {
          return true;
        }
      }
    }
    return false;
  }

  private static void mutate(MemorySegment memory, SplittableRandom random, int bytes) {
    int changes = 1 + random.nextInt(3);
    for (int i = 0; i < changes; i++) {
      long at = random.nextInt(bytes);
      byte value =
          switch (random.nextInt(4)) {
            case 0 -> (byte) random.nextInt();
            case 1 -> (byte) 0xFF;
            case 2 -> 0;
            default ->
                (byte) (memory.get(ValueLayout.JAVA_BYTE, at) ^ 1 << random.nextInt(Byte.SIZE));
          };
      memory.set(ValueLayout.JAVA_BYTE, at, value);
    }
  }
}
