package io.gpunvme.capi;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.CpuCuda;
import io.gpunvme.models.LoadListener;
import io.gpunvme.models.RawModelWriter;
import io.gpunvme.models.RawWriteOptions;
import io.gpunvme.models.Weights;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.path.PathKind;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Programs in C and Python use CUDA besides: everything that is opened for them allows for it. */
@Timeout(120)
class ForeignCudaTest {
  private static final int BYTES = 100_000;

  @TempDir Path folder;

  private final GpuAccelerator gpu =
      GpuAccelerator.open(FakeDriver.load(CpuCuda.library()).device(0));
  private final Memory memory = new Memory("gpu:0", gpu, _ -> null);

  @AfterEach
  void close() {
    gpu.close();
  }

  private static void requireHostMemory(String mode) {
    assertThat(mode)
        .startsWith("GPU-initiated, host")
        .contains("by way of host memory, because other code uses CUDA");
  }

  @Test
  void storagesSayThatTheirDataGoesByHostMemory() throws Throwable {
    try (Storage storage = Storage.open("sim:size=1MiB", memory, false)) {
      storage.transfer(
          false, List.of(new Storage.Item(0, storage.allocate(4096), 4096)), () -> false);
      requireHostMemory(storage.storage().explain().modes().get(PathKind.DIRECT));
    }
  }

  @Test
  void soDoModels() throws Exception {
    Path image = folder.resolve("image");
    write(image);
    try (Model model = Model.open("sim:file=" + image, memory);
        LayerLoader loader = model.layers(BYTES, 2)) {
      loader.prefetch(List.of(model.layer("all", List.of(new Model.Read(0, null, 0, BYTES)))));
      loader.next().release();
      requireHostMemory(loader.paths().get(PathKind.DIRECT).mode());
    }
  }

  private void write(Path image) throws IOException {
    String header =
        "{\"w\":{\"dtype\":\"U8\",\"shape\":[%d],\"data_offsets\":[0,%<d]}}".formatted(BYTES);
    ByteBuffer file =
        ByteBuffer.allocate(8 + header.length() + BYTES).order(ByteOrder.LITTLE_ENDIAN);
    file.putLong(header.length()).put(header.getBytes(StandardCharsets.UTF_8));
    Path path = Files.write(folder.resolve("m.safetensors"), file.array());
    try (Accelerator cpu = CpuAccelerator.open();
        Weights weights = Weights.open(StorageAddress.parse(path.toString()), cpu);
        GpuStorage target =
            GpuStorage.open(
                StorageAddress.parse("sim:size=1MiB,file=" + image),
                cpu,
                StorageOptions.defaults().withWrite(true))) {
      RawModelWriter.prepare(weights, target, RawWriteOptions.named("m")).run(LoadListener.NONE);
    }
  }
}
