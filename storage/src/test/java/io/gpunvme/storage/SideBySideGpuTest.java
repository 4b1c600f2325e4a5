package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Several SSDs are read by kernels at a time, and others use the GPU meanwhile: no read waits for
 * longer than its own commands take. A kernel gives up a command after 30 s.
 */
@Tag("gpu")
@Timeout(100)
class SideBySideGpuTest {
  private static final long BYTES = 64 << 20;
  private static final int SSDS = 6;
  private static final long STALL_NANOS = 15_000_000_000L;

  private final List<GpuStorage> ssds = new ArrayList<>();
  private GpuAccelerator gpu;

  @BeforeEach
  void open() {
    gpu = TestGpu.open();
    StorageOptions options =
        StorageOptions.defaults()
            .with(InitiatorOptions.defaults().with(InitiatorKind.GPU, Placement.VRAM_DATA));
    for (int i = 0; i < SSDS; i++) {
      StorageAddress address = StorageAddress.parse("sim:size=" + BYTES);
      ssds.add(GpuStorage.open(address, gpu, options));
    }
  }

  @AfterEach
  void close() {
    ssds.forEach(GpuStorage::close);
    if (gpu != null) {
      gpu.close();
    }
  }

  /** Reads all SSDs again and again; returns the longest time that a read took, ns. */
  private long readBeside(Runnable others) throws InterruptedException, ExecutionException {
    AtomicBoolean over = new AtomicBoolean();
    try (ExecutorService threads = Executors.newFixedThreadPool(SSDS)) {
      List<Future<Long>> reads = new ArrayList<>();
      for (GpuStorage ssd : ssds) {
        reads.add(threads.submit(() -> readUntil(ssd, over)));
      }
      try {
        others.run();
      } finally {
        over.set(true);
      }
      long longest = 0;
      for (Future<Long> read : reads) {
        longest = Math.max(longest, read.get());
      }
      return longest;
    }
  }

  private long readUntil(GpuStorage ssd, AtomicBoolean over) {
    long longest = 0;
    int reads = 0;
    try (DeviceBuffer target = gpu.allocate(BYTES)) {
      while (!over.get() || reads < 20) {
        long start = System.nanoTime();
        ssd.read(0, target, 0, BYTES);
        longest = Math.max(longest, System.nanoTime() - start);
        reads++;
      }
    }
    return longest;
  }

  @Test
  void readsOfManySsdsDoNotHoldUpEachOther() throws Exception {
    assertThat(readBeside(() -> {})).isLessThan(STALL_NANOS);
  }

  @Test
  void memoryIsTakenAndFreedMeanwhile() throws Exception {
    Runnable others =
        () -> {
          for (int i = 0; i < 100; i++) {
            gpu.allocate(32 << 20).close();
            gpu.allocatePinned(1 << 20).close();
          }
        };
    assertThat(readBeside(others)).isLessThan(STALL_NANOS);
  }

  @Test
  void streamsOfOthersComeAndGoMeanwhile() throws Exception {
    Runnable others =
        () -> {
          DeviceBuffer memory = gpu.allocate(1 << 20);
          for (int i = 0; i < 200; i++) {
            try (CudaStream stream = gpu.context().stream()) {
              stream.fillAsync(memory.deviceAddress(), (byte) i, 1 << 20);
              stream.synchronize();
            }
          }
          memory.close();
        };
    assertThat(readBeside(others)).isLessThan(STALL_NANOS);
  }
}
