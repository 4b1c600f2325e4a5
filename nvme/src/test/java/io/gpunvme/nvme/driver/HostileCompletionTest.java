package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.memory.BusMapper;
import io.gpunvme.nvme.memory.FakeBus;
import io.gpunvme.nvme.pci.DoorbellPoller;
import io.gpunvme.nvme.spec.Cns;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;

/**
 * A controller that writes anything into its completion queues cannot confuse the host for long.
 */
class HostileCompletionTest {
  private static final int ENTRIES = 100_000;
  private static final int ADMIN_COMMANDS = 5_000;
  private static final int QID = 2;

  private static long seed() {
    String given = System.getProperty("gpunvme.seed", "");
    return given.isEmpty() ? System.nanoTime() : Long.parseLong(given);
  }

  @Test
  void randomEntriesEndEveryCommandAtMostOnce() {
    long seed = seed();
    FakeBus bus = new FakeBus(false);
    List<MemorySegment> mapped = new ArrayList<>();
    BusMapper mapper =
        memory -> {
          mapped.add(memory);
          return bus.map(memory);
        };
    QueuePairSpec spec =
        new QueuePairSpec(QID, 16, 32, 15, 0, 4096, 4096, DataPointerMode.PRP, 1_000_000_000);
    try (Arena arena = Arena.ofConfined();
        QueuePair queue =
            new QueuePair(spec, mapper, arena.allocate(4096, 4096), DoorbellPoller.TIRELESS)) {
      MemorySegment cq = mapped.getFirst().asSlice(queue.cqBusAddress() - queue.sqBusAddress());
      scribble(queue, cq, new SplittableRandom(seed), "seed " + seed);
      assertThat(queue.completed() + queue.stale() + queue.unknown()).isEqualTo(ENTRIES);
      assertThat(queue.completed()).isPositive();
      assertThat(queue.stale()).isPositive();
      assertThat(queue.unknown()).isPositive();
    }
  }

  /** Keeps the queue full and writes one random entry after the other. */
  private static void scribble(
      QueuePair queue, MemorySegment cq, SplittableRandom random, String seed) {
    Set<Long> outstanding = new HashSet<>();
    CompletionSink sink =
        (q, slot, status) -> assertThat(outstanding.remove(q.userData(slot))).as(seed).isTrue();
    long next = 0;
    int phase = 1;
    for (int i = 0; i < ENTRIES; i++) {
      while (queue.submitIo(IoOpcode.FLUSH, 1, 0, 1, 0, null, 0, 0, next) >= 0) {
        outstanding.add(next++);
      }
      queue.ring();
      int sqid = random.nextInt(50) == 0 ? random.nextInt(65536) : QID;
      int cid = random.nextInt(4) == 0 ? random.nextInt(65536) : random.nextInt(1 << 8);
      int status = random.nextInt(0x8000);
      long at = (long) (i % queue.cqSize()) * Cqe.SIZE;
      Cqe.put(
          cq, at, random.nextInt(), random.nextInt(), random.nextInt(), sqid, cid, status, phase);
      queue.poll(sink);
      if (sqid != QID) {
        // Left alone until it is whole.
        assertThat(queue.poll(sink)).as(seed).isZero();
        Cqe.put(cq, at, 0, 0, 0, QID, cid, status, phase);
        queue.poll(sink);
      }
      phase ^= (i + 1) % queue.cqSize() == 0 ? 1 : 0;
      assertThat(queue.inFlight()).as(seed).isEqualTo(outstanding.size());
    }
  }

  @Test
  void randomAdminCompletionsAreAnsweredWithAResultOrATypedException() {
    long seed = seed();
    SplittableRandom random = new SplittableRandom(seed);
    FakeFunction function = new FakeFunction();
    FakeAdmin fake = function.admin();
    ControllerOptions options =
        ControllerOptions.builder().adminTimeout(Duration.ofSeconds(10)).asyncEvents(false).build();
    try (NvmeController controller = NvmeController.open(function, options)) {
      fake.first =
          (sqe, data) -> {
            for (int n = random.nextInt(4); n > 0; n--) {
              int cid =
                  random.nextInt(4) == 0
                      ? Sqe.cid(sqe, 0) ^ 1 << random.nextInt(16)
                      : random.nextInt(65536);
              fake.post(cid, random.nextInt(0x8000), random.nextInt());
            }
            if (data != null) {
              for (int n = random.nextInt(20); n > 0; n--) {
                data.set(ValueLayout.JAVA_BYTE, random.nextInt(4096), (byte) random.nextInt());
              }
            }
            return random.nextInt(4) == 0 ? random.nextInt(0x8000) : 0;
          };
      int answered = 0;
      for (int i = 0; i < ADMIN_COMMANDS; i++) {
        Throwable thrown = catchThrowable(() -> controller.identify(Cns.NAMESPACE, 1));
        if (thrown == null) {
          answered++;
        } else {
          assertThat(thrown)
              .as("seed %d, command %d", seed, i)
              .isInstanceOf(NvmeException.class)
              .isInstanceOf(NvmeStatusException.class);
        }
      }
      assertThat(answered).isPositive();
      assertThat(controller.resets()).isZero();
      fake.first = (sqe, data) -> FakeAdmin.NORMAL;
      controller.identify(Cns.NAMESPACE, 1);
    }
  }
}
