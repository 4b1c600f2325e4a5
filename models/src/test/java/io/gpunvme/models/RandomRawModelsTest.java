package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.models.format.Cases;
import io.gpunvme.models.format.MetaValue;
import io.gpunvme.models.format.RandomModel;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Random models of either format are the same on a raw device: tensors, checksums, metadata. */
class RandomRawModelsTest {
  private static final int MODELS = 40;
  private static final int IMAGE = 16 << 20;

  @TempDir Path folder;

  @Test
  void safetensors() throws IOException {
    check("raw models of safetensors", ".safetensors", RandomModel::safetensors);
  }

  @Test
  void gguf() throws IOException {
    check("raw models of GGUF", ".gguf", RandomModel::gguf);
  }

  private void check(String what, String suffix, Function<SplittableRandom, RandomModel> make)
      throws IOException {
    Cases cases = Cases.announce(what);
    Path image = folder.resolve("disk.img");
    Files.write(image, new byte[IMAGE]);
    try (Accelerator accelerator = CpuAccelerator.open()) {
      for (int number : cases.numbers(MODELS)) {
        SplittableRandom random = cases.random(number);
        Path file = Files.write(folder.resolve("m" + suffix), make.apply(random).file);
        StorageAddress to = StorageAddress.parse("file:" + image + "?path=mmap");
        try (Weights plain =
            Weights.open(StorageAddress.parse("file:" + file + "?path=mmap"), accelerator)) {
          write(plain, to, RawWriteOptions.named("m").withOverwrite(true), random);
          try (Weights raw = Weights.open(to, accelerator)) {
            requireSame(cases.describe(number), raw, plain);
          }
        }
      }
    }
  }

  private static void write(
      Weights plain, StorageAddress to, RawWriteOptions options, SplittableRandom random) {
    try (GpuStorage target =
        GpuStorage.open(to, plain.accelerator(), StorageOptions.defaults().withWrite(true))) {
      RawModelWriter.prepare(
              plain,
              target,
              options.withAlignment(512L << random.nextInt(6)),
              random.nextInt(1, 9000))
          .run(LoadListener.NONE);
    }
  }

  private static void requireSame(String what, Weights raw, Weights plain) {
    assertThat(raw.tensors().keySet()).as(what).containsExactlyElementsOf(plain.tensors().keySet());
    for (TensorInfo t : plain.tensors().values()) {
      TensorInfo there = raw.tensors().get(t.name());
      assertThat(there.type()).as(what).isEqualTo(t.type());
      assertThat(there.shape()).as(what).isEqualTo(t.shape());
    }
    Manifest stored = raw.storedManifest().orElseThrow();
    assertThat(stored.entries()).as(what).isEqualTo(plain.manifest(LoadListener.NONE).entries());
    assertThat(stored.entries()).as(what).isEqualTo(raw.manifest(LoadListener.NONE).entries());
    assertThat(raw.metadata().keySet())
        .as(what)
        .containsExactlyElementsOf(plain.metadata().keySet());
    plain
        .metadata()
        .forEach(
            (key, value) ->
                assertThat(flat(raw.metadata().get(key))).as(what).isEqualTo(flat(value)));
  }

  /** A value with its types and all items. */
  private static List<Object> flat(MetaValue value) {
    List<Object> all = new ArrayList<>();
    all.add(value.type());
    if (value instanceof MetaValue.Items items) {
      all.add(items.elementType());
      items.forEach(v -> all.add(flat(v)));
    } else {
      all.add(value.toString());
    }
    return all;
  }
}
