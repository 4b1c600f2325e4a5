package io.gpunvme.storage.path.direct;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
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
      int worst = 0;
      for (int i = 0; i < 20; i++) {
        int before = reads.get();
        storage.read(0, buffer, READERS * 4096L, 512);
        worst = Math.max(worst, reads.get() - before);
      }
      enough.set(true);
      for (Thread other : others) {
        other.join();
      }
      // Each of them once before, and once more while this one was on its way into the queue and
      // out.
      assertThat(worst).isLessThanOrEqualTo(3 * READERS);
    }
  }
}
