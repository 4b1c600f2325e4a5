package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.PathKind;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** What transfers that wait for their turn take of the heap. */
@Timeout(120)
class QueuedTransfersTest {
  private static final int COUNT = 5000;
  private static final int LENGTH = 512;

  /** A transfer's own objects are some hundred bytes. */
  private static final long MOST_EACH = 4096;

  private final ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
  private final CountDownLatch held = new CountDownLatch(1);

  private GpuStorage open(Accelerator cpu) {
    return HeldStorage.open(
        new byte[COUNT],
        cpu,
        _ -> {
          try {
            held.await();
          } catch (InterruptedException e) {
            throw new AssertionError(e);
          }
        });
  }

  private long allocated() {
    return threads.getThreadAllocatedBytes(Thread.currentThread().threadId());
  }

  @Test
  void manyThatWaitAreSmall() {
    try (Accelerator cpu = CpuAccelerator.open();
        DeviceBuffer buffer = cpu.allocate(LENGTH);
        GpuStorage storage = open(cpu)) {
      List<CompletableFuture<TransferResult>> reads = new ArrayList<>(COUNT);
      reads.add(storage.readAsync(0, buffer, 0, LENGTH));
      long before = allocated();
      for (int i = 1; i < COUNT; i++) {
        reads.add(storage.readAsync(i % LENGTH, buffer, 0, LENGTH));
      }
      long each = (allocated() - before) / (COUNT - 1);
      held.countDown();
      reads.forEach(CompletableFuture::join);
      assertThat(each).as("bytes of heap a transfer").isLessThan(MOST_EACH);
      assertThat(storage.stats()).containsOnlyKeys(PathKind.PINNED);
    }
  }

  /** Nor does one that is carried out at once make counters that it throws away. */
  @Test
  void oneThatDoesNotWaitIsSmallToo() {
    held.countDown();
    try (Accelerator cpu = CpuAccelerator.open();
        DeviceBuffer buffer = cpu.allocate(LENGTH);
        GpuStorage storage = open(cpu)) {
      storage.read(0, buffer, 0, LENGTH);
      long before = allocated();
      for (int i = 0; i < COUNT; i++) {
        storage.read(0, buffer, 0, LENGTH);
      }
      long each = (allocated() - before) / COUNT;
      assertThat(each).as("bytes of heap a transfer").isLessThan(MOST_EACH);
    }
  }
}
