package io.gpunvme.storage;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.layer.LayerLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** With a driver that waits for all streams before it gives memory. */
@Timeout(120)
class StreamStagingTest {
  private static final int BYTES = 70_001;

  private final FakeDriver driver = FakeDriver.fresh("-DFAKE_IN_ORDER=1");

  /** A loader's streams wait for layers: those of few bytes go another way than others. */
  @Test
  void aLoaderHasTakenWhatShortReadsOfAFileNeed(@TempDir Path folder) throws Exception {
    Path file = Files.write(folder.resolve("file"), new byte[1 << 20]);
    try (GpuAccelerator gpu = GpuAccelerator.open(driver.load().device(0));
        GpuStorage storage = GpuStorage.open(file.toString(), gpu);
        DeviceBuffer buffer = gpu.allocate(4096);
        LayerLoader _ = LayerLoader.open(storage, 128 << 10, 2)) {
      int before = driver.calls("cuMemHostAlloc");
      storage.read(0, buffer, 0, 4096);
      assertThat(driver.calls("cuMemHostAlloc")).isEqualTo(before);
    }
  }

  /** Its ends are no blocks of any member, and no pages of the file. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        "sim:size=1MiB",
        "stripe:sim:size=1MiB,sim:size=1MiB,sim:size=1MiB;unit=4096",
        "%s",
        "%s?path=pinned&direct=true&chunk=64KiB&ring=256KiB"
      })
  void whatIsStagedNeedsNoMemoryWhileAStreamWaits(String pattern, @TempDir Path folder)
      throws Exception {
    String address = pattern.formatted(Files.write(folder.resolve("file"), new byte[1 << 20]));
    StorageOptions options =
        StorageOptions.defaults()
            .withWrite(true)
            .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST));
    try (GpuAccelerator gpu = GpuAccelerator.open(driver.load().device(0));
        GpuStorage storage = GpuStorage.open(StorageAddress.parse(address), gpu, options);
        DeviceBuffer buffer = gpu.allocate(BYTES);
        DeviceBuffer word = gpu.allocatePinned(StreamGate.BYTES);
        CudaStream waiting = gpu.context().stream();
        CudaStream stream = gpu.context().stream()) {
      StreamTransfers streams = storage.streams();
      StreamGate gate = new StreamGate(word, 0);
      gate.await(waiting, 1);
      try {
        for (int member = 0; member < 3; member++) {
          long offset = 4096L * member + 1;
          streams.write(offset, buffer, 0, BYTES, stream).get(10, TimeUnit.SECONDS);
          streams.read(offset, buffer, 0, BYTES, stream).get(10, TimeUnit.SECONDS);
        }
      } finally {
        gate.open(1);
      }
      waiting.synchronize();
    }
    assertThat(driver.liveButModules()).as("everything was closed").isZero();
  }
}
