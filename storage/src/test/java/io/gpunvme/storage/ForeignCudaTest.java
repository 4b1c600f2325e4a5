package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.CpuCuda;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.StorageException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/**
 * Beside code that takes and frees GPU memory as it likes, such as PyTorch: the driver waits for
 * kernels then, and lets no copy begin. The stand-in does the same.
 */
@Timeout(180)
class ForeignCudaTest {
  /** More than what is staged at a time. */
  private static final int BYTES = 20 << 20;

  private static final String DEVICE = "sim:size=20MiB,latency=5ms,mdts=128KiB";

  /** A command that nobody is kept from serving is over much earlier. */
  private static final Duration TIMEOUT = Duration.ofSeconds(4);

  private final GpuAccelerator gpu =
      GpuAccelerator.open(FakeDriver.load(CpuCuda.library()).device(0));
  private final AtomicBoolean over = new AtomicBoolean();

  @AfterEach
  void close() {
    gpu.close();
  }

  private GpuStorage open(InitiatorOptions who) {
    return open(DEVICE, who);
  }

  private GpuStorage open(String device, InitiatorOptions who) {
    ControllerOptions driver =
        ControllerOptions.builder().ioTimeout(TIMEOUT).allowWrite(true).build();
    return GpuStorage.open(
        StorageAddress.parse(device), gpu, StorageOptions.defaults().with(driver).with(who));
  }

  private static InitiatorOptions withoutRetries(boolean foreignCuda) {
    return new InitiatorOptions(InitiatorKind.AUTO, null, 2, 32, 0, 0, foreignCuda);
  }

  /** It has taken memory once when this returns. */
  private Thread startForeign() throws InterruptedException {
    CountDownLatch begun = new CountDownLatch(1);
    Thread foreign =
        Thread.ofPlatform()
            .start(
                () -> {
                  while (!over.get()) {
                    gpu.context().allocate(4096).close();
                    begun.countDown();
                    Thread.yield();
                  }
                });
    begun.await();
    return foreign;
  }

  private void readBeside(GpuStorage storage, DeviceBuffer buffer) throws InterruptedException {
    Thread foreign = startForeign();
    try {
      storage.read(0, buffer, 0, BYTES);
    } finally {
      over.set(true);
      foreign.join();
    }
  }

  @Test
  void kernelsWaitForNoCopyThatTheDriverHoldsUp() throws InterruptedException {
    byte[] content = new byte[BYTES];
    new SplittableRandom(Long.getLong("gpunvme.seed", System.nanoTime())).nextBytes(content);
    try (GpuStorage storage = open(withoutRetries(true));
        DeviceBuffer buffer = gpu.allocate(BYTES);
        Arena arena = Arena.ofConfined()) {
      buffer.copyFromHost(MemorySegment.ofArray(content), 0);
      storage.write(0, buffer, 0, BYTES);
      buffer.copyFromHost(MemorySegment.ofArray(new byte[BYTES]), 0);

      readBeside(storage, buffer);

      MemorySegment seen = arena.allocate(BYTES);
      buffer.copyToHost(0, seen);
      assertThat(seen.toArray(ValueLayout.JAVA_BYTE)).isEqualTo(content);
      assertThat(storage.explain().modes().get(PathKind.DIRECT))
          .startsWith("GPU-initiated, host, 2 queue pairs of depth 32")
          .contains("by way of host memory, because other code uses CUDA");
    }
  }

  /** What happens otherwise, so that the test above can fail. */
  @Test
  void withDataInGpuMemoryTheyWouldStand() throws InterruptedException {
    // So slow that the other thread meets the kernel on a busy machine, too.
    try (GpuStorage storage =
            open(DEVICE.replace("latency=5ms", "latency=100ms"), withoutRetries(false));
        DeviceBuffer buffer = gpu.allocate(BYTES)) {
      assertThatThrownBy(() -> readBeside(storage, buffer)).isInstanceOf(StorageException.class);
      assertThat(storage.explain().modes().get(PathKind.DIRECT))
          .startsWith("GPU-initiated, vram-data")
          .doesNotContain("other code");
    }
  }

  /** pinned=true asks for copies straight to GPU memory. */
  @Test
  void whoPinsTheSsdHasItsCopies() {
    try (GpuStorage storage = open(DEVICE + ",pinned=true", withoutRetries(true));
        DeviceBuffer buffer = gpu.allocate(4096)) {
      storage.read(0, buffer, 0, 4096);
      assertThat(storage.explain().modes().get(PathKind.DIRECT))
          .startsWith("GPU-initiated, vram-data")
          .doesNotContain("other code");
    }
  }

  /** Who says where data is to be is not overruled. */
  @Test
  void aPlacementThatWasGivenIsUsed() {
    try (GpuStorage storage =
            open(withoutRetries(true).with(InitiatorKind.AUTO, Placement.VRAM_DATA));
        DeviceBuffer buffer = gpu.allocate(4096)) {
      storage.read(0, buffer, 0, 4096);
      assertThat(storage.explain().modes().get(PathKind.DIRECT))
          .startsWith("GPU-initiated, vram-data")
          .doesNotContain("other code");
    }
  }
}
