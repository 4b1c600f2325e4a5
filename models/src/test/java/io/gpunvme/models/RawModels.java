package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.models.format.SafetensorsWriter;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.io.TempDir;

/** A model to be written to raw devices, and what is there afterwards. */
abstract class RawModels {
  static final int IMAGE = 4 << 20;

  /** So small that tensors are cut. */
  static final long BATCH = 100_000;

  static final ControllerOptions WRITABLE = ControllerOptions.builder().allowWrite(true).build();

  @TempDir Path folder;

  final Map<String, byte[]> content = new HashMap<>();
  Accelerator accelerator;
  Path model;

  Accelerator open() {
    return CpuAccelerator.open();
  }

  @BeforeEach
  void writeModel() throws IOException {
    accelerator = open();
    SafetensorsWriter writer = new SafetensorsWriter();
    writer.metadata("made", "here");
    writer.tensor("layers.10.w", ElementType.BF16, 64, 96);
    writer.tensor("layers.2.w", ElementType.F32, 1, 300, 257);
    writer.tensor("layers.2.b", ElementType.F32, 12, 8, 6, 4);
    writer.tensor("scalar", ElementType.F64);
    writer.tensor("nothing", ElementType.F16, 3, 0, 5);
    writer.tensor("odd", ElementType.U8, 212_347);
    writer.tensor("four", ElementType.F4, 8, 6);
    model = write("m.safetensors", writer, 11);
  }

  @AfterEach
  void close() {
    // A test that was skipped before it began has none.
    if (accelerator != null) {
      accelerator.close();
    }
  }

  Path write(String name, SafetensorsWriter writer, int seed) throws IOException {
    SafetensorsWriter.Layout layout = writer.layout(SafetensorsWriter.WORD);
    byte[] file = new byte[(int) layout.fileBytes()];
    new Random(seed).nextBytes(file);
    System.arraycopy(layout.head(), 0, file, 0, layout.head().length);
    for (TensorInfo t : layout.tensors()) {
      content.put(t.name(), Arrays.copyOfRange(file, (int) t.offset(), (int) t.end()));
    }
    return Files.write(folder.resolve(name), file);
  }

  Path image(String name, byte[] start) throws IOException {
    return Files.write(folder.resolve(name), Arrays.copyOf(start, IMAGE));
  }

  Path image() throws IOException {
    return image("disk.img", new byte[0]);
  }

  static RawWriteOptions options() {
    return RawWriteOptions.named("a model");
  }

  Weights source() {
    return Weights.open(StorageAddress.parse("file:" + model), accelerator);
  }

  GpuStorage target(StorageAddress address) {
    return GpuStorage.open(address, accelerator, StorageOptions.defaults().withWrite(true));
  }

  RawWriteReport write(StorageAddress address, RawWriteOptions options) {
    try (Weights weights = source();
        GpuStorage target = target(address)) {
      return RawModelWriter.prepare(weights, target, options, BATCH).run(LoadListener.NONE);
    }
  }

  void requireModel(StorageAddress address) {
    try (Weights weights = Weights.open(address, accelerator);
        Load load =
            weights.prepare(
                weights.plan(LoadRequest.all()), weights.storedManifest().orElseThrow());
        LoadedWeights loaded = load.run(LoadListener.NONE)) {
      assertThat(loaded.names()).containsExactlyInAnyOrderElementsOf(content.keySet());
      assertThat(loaded.report().verified()).isEqualTo(content.size());
      for (LoadedTensor t : loaded.tensors()) {
        byte[] bytes = new byte[(int) t.bytes()];
        if (bytes.length > 0) {
          t.buffer().copyToHost(t.offset(), MemorySegment.ofArray(bytes));
        }
        assertThat(Arrays.mismatch(bytes, content.get(t.name()))).as(t.name()).isEqualTo(-1);
      }
      assertThat(weights.metadata().get("made")).hasToString("here");
    }
  }

  void requireNoModel(StorageAddress address) {
    assertThatExceptionOfType(FormatException.class)
        .isThrownBy(() -> Weights.open(address, accelerator).close())
        .withMessageContaining("write-model");
  }
}
