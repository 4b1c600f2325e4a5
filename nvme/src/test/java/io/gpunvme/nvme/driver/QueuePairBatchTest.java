package io.gpunvme.nvme.driver;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.nvme.memory.FakeBus;
import io.gpunvme.nvme.pci.DoorbellPoller;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.StatusCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Commands written and not yet announced. */
class QueuePairBatchTest {
  private static final int ENTRIES = 5;
  private static final int QID = 1;

  private final FakeBus bus = new FakeBus(false);
  private final Arena arena = Arena.ofConfined();
  private final List<MemorySegment> mapped = new ArrayList<>();
  private final QueuePair queue =
      new QueuePair(
          new QueuePairSpec(
              QID, ENTRIES, ENTRIES, ENTRIES - 1, 0, 4096, 65536, DataPointerMode.PRP, 1),
          memory -> {
            mapped.add(memory);
            return bus.map(memory);
          },
          arena.allocate(4096, 4096),
          DoorbellPoller.TIRELESS);

  @AfterEach
  void free() {
    queue.close();
    arena.close();
  }

  private int submit() {
    return queue.submitIo(IoOpcode.WRITE_ZEROES, 1, 7, 1, 0, null, 0, 0, 0);
  }

  @Test
  void countsUpToTheDoorbellAcrossTheEndOfTheRing() {
    MemorySegment cq = mapped.getFirst().asSlice(queue.cqBusAddress() - queue.sqBusAddress());
    int completed = 0;
    for (int round = 0; round < 4 * ENTRIES; round++) {
      int batch = 1 + round % (ENTRIES - 1);
      int[] slots = new int[batch];
      for (int i = 0; i < batch; i++) {
        assertThat(queue.unrung()).isEqualTo(i);
        slots[i] = submit();
      }
      assertThat(queue.unrung()).as("round %d", round).isEqualTo(batch);
      queue.ring();
      assertThat(queue.unrung()).isZero();
      assertThat(queue.sqDoorbells()).isEqualTo(round + 1);
      for (int slot : slots) {
        int lap = completed / ENTRIES;
        long at = (long) (completed++ % ENTRIES) * Cqe.SIZE;
        Cqe.put(cq, at, 0, 0, 0, QID, queue.cid(slot), 0, ~lap & 1);
      }
      assertThat(queue.poll((q, slot, status) -> {})).isEqualTo(batch);
    }
  }

  @Test
  void aBrokenQueueKeepsItsCountUntilItIsRebuilt() {
    submit();
    submit();
    queue.breakQueue();
    queue.ring();
    assertThat(queue.unrung()).isEqualTo(2);
    assertThat(queue.sqDoorbells()).isZero();
    queue.failAll(StatusCode.ABORTED_BY_HOST.status(), (q, slot, status) -> {});
    queue.rebuild();
    assertThat(queue.unrung()).isZero();
    submit();
    assertThat(queue.unrung()).isEqualTo(1);
  }
}
