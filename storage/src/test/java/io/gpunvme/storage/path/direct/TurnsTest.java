package io.gpunvme.storage.path.direct;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Many threads on one SSD. */
@Timeout(120)
class TurnsTest {
  private static final int READERS = 4;

  /** Who reads on and on lets those go first who wait already. */
  @Test
  void whoWaitsLongestIsNext() throws InterruptedException {
    AtomicInteger reads = new AtomicInteger();
    AtomicBoolean enough = new AtomicBoolean();
    try (CpuAccelerator cpu = CpuAccelerator.open();
        GpuStorage storage = GpuStorage.open("sim:size=1MiB,latency=2ms", cpu);
        DeviceBuffer buffer = cpu.allocate((READERS + 1) * 4096L)) {
      Thread[] others = new Thread[READERS];
      for (int i = 0; i < READERS; i++) {
        long at = i * 4096L;
        others[i] =
            Thread.ofPlatform()
                .start(
                    () -> {
                      while (!enough.get()) {
                        storage.read(0, buffer, at, 512);
                        reads.incrementAndGet();
                      }
                    });
      }
      while (reads.get() < READERS) {
        Thread.onSpinWait();
      }
      int[] meanwhile = new int[21];
      for (int i = 0; i < meanwhile.length; i++) {
        int before = reads.get();
        storage.read(0, buffer, READERS * 4096L, 512);
        meanwhile[i] = reads.get() - before;
      }
      enough.set(true);
      for (Thread other : others) {
        other.join();
      }
      // Each of them once before, and once more while this one was on its way into the queue and
      // out. In the middle, because this thread may lose its processor between two lines.
      Arrays.sort(meanwhile);
      assertThat(meanwhile[meanwhile.length / 2]).isLessThanOrEqualTo(3 * READERS);
    }
  }
}
