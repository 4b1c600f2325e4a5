package io.gpunvme.gpu.queue;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.nvme.driver.ControllerOptions;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestReporter;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Thousands of threads read and write at random while the controller drops, doubles, delays, tears
 * and refuses: every byte read is what was written last. {@code -Dgpunvme.soak=100000000} sets the
 * number of operations.
 */
@Tag("gpu")
class SoakGpuTest {
  private static final String FAULTS =
      "status=generic/namespace-not-ready on read|write p=0.0001;"
          + "duplicate on read|write p=0.00001;reorder=8 on read|write p=0.001;"
          + "delay=1ms on read|write p=0.0001;torn on read|write p=0.00001;"
          + "drop on read|write p=0.0000005;late=600ms on read|write p=0.0000005;"
          + "wrong-cid=0x8000 on read|write p=0.0000002";
  private static final int THREADS = 4096;
  private static final int GROUP = 128;
  private static final int BLOCKS_EACH = 64;
  private static final int BLOCK = 512;
  private static final long OPERATIONS = Long.getLong("gpunvme.soak", 2_000_000);
  private static final int EACH = 2000;
  private static final int QUEUES = 16;

  private long reads;
  private long writes;
  private long refused;
  private long wrong;
  private long ended;
  private final List<DeviceError.Kind> kinds = new ArrayList<>();

  /**
   * @param recovering whether queues are recovered while the kernel runs; the controller fails once
   *     in the middle, too
   */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  @Timeout(500)
  void everyByteIsWhatWasWrittenLast(boolean recovering, TestReporter reporter) {
    long bytes = (long) THREADS * BLOCKS_EACH * BLOCK;
    ControllerOptions options =
        ControllerOptions.builder()
            .allowWrite(true)
            // Longer than the recovery of a controller that has failed.
            .ioTimeout(Duration.ofMillis(recovering ? 700 : 250))
            .recoveryTimeout(Duration.ofMillis(500))
            .build();
    KernelStorageOptions queues = KernelStorageOptions.in(Placement.HOST).with(QUEUES, 512);
    int workers = Math.clamp(Runtime.getRuntime().availableProcessors() - 4, 1, QUEUES);
    try (GpuAccelerator accelerator = TestGpu.open();
        GpuModule module = GpuModule.compile(accelerator, "soak.cu", SoakKernel.SOURCE);
        DeviceBuffer data = accelerator.allocatePinned((long) THREADS * BLOCK);
        DeviceBuffer versions = accelerator.allocate((long) THREADS * BLOCKS_EACH * 4);
        DeviceBuffer results = accelerator.allocate(THREADS * SoakKernel.RESULT_BYTES);
        Device device =
            Device.open(
                DeviceAddress.parse(
                    "sim:latency=0,size=%d,workers=%d,queues=%d".formatted(bytes, workers, QUEUES)),
                options,
                recovering ? FAULTS + ";cfs on read nth=200000" : FAULTS);
        KernelStorage storage =
            KernelStorage.open(device, accelerator, recovering ? queues.withRecovery() : queues)) {
      storage.register(data);
      CudaFunction kernel = module.function("soak");
      CudaStream stream = accelerator.context().stream();
      long start = System.nanoTime();
      int round = 0;
      while (reads + writes < OPERATIONS) {
        stream.launch(
            kernel,
            LaunchShape.of(THREADS / GROUP, GROUP),
            new KernelArguments()
                .addLong(storage.deviceHandle())
                .addLong(results.deviceAddress())
                .addLong(versions.deviceAddress())
                .addInt(BLOCKS_EACH)
                .addInt(EACH)
                .addInt(round++ * 0x9E3779B1));
        assertThat(storage.await(stream::isIdle, Duration.ofSeconds(60)))
            .as("ended alone")
            .isTrue();
        collect(results);
        storage.errors().records().forEach(e -> kinds.add(e.kind()));
        assertThat(wrong)
            .as(
                "wrong data after %d reads, %d threads ended early, %d recoveries, %s",
                reads, ended, storage.recoveries(), counted())
            .isZero();
        storage.recover();
      }
      double seconds = (System.nanoTime() - start) / 1e9;
      reporter.publishEntry(
          "%d reads and %d writes in %d rounds and %.1f s, %d refused, %d threads ended early, %d recoveries meanwhile, %s"
              .formatted(
                  reads, writes, round, seconds, refused, ended, storage.recoveries(), counted()));
      assertThat(storage.recoveries() > 0).as("recovered while kernels ran").isEqualTo(recovering);
      assertThat(refused).as("the faults were on").isPositive();
      assertThat(kinds).contains(DeviceError.Kind.STATUS, DeviceError.Kind.STALE);
    }
  }

  private String counted() {
    StringBuilder text = new StringBuilder();
    for (DeviceError.Kind kind : DeviceError.Kind.values()) {
      text.append(kind).append(' ').append(kinds.stream().filter(k -> k == kind).count());
      text.append(' ');
    }
    return text.toString();
  }

  private void collect(DeviceBuffer results) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(THREADS * SoakKernel.RESULT_BYTES, Long.BYTES);
      results.copyToHost(0, all);
      for (int t = 0; t < THREADS; t++) {
        long at = t * SoakKernel.RESULT_BYTES;
        reads += DeviceLayout.getLong(all, at);
        writes += DeviceLayout.getLong(all, at + 8);
        wrong += DeviceLayout.getLong(all, at + 16);
        refused += DeviceLayout.getLong(all, at + 24);
        int last = DeviceLayout.getInt(all, at + 32);
        assertThat(last)
            .isIn(0, DeviceStatus.TIMEOUT, DeviceStatus.BUSY, DeviceStatus.ABORTED_BY_HOST);
        ended += last == 0 ? 0 : 1;
      }
    }
  }
}
