package io.gpunvme.models;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.GgufBytes;
import io.gpunvme.models.format.SafetensorsWriter;
import io.gpunvme.storage.StorageAddress;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which tensors are layers, how large these are, and how fast they are read. */
class ModelLayersTest {
  @TempDir Path folder;

  private final CpuAccelerator accelerator = CpuAccelerator.open();
  private @Nullable Weights open;

  @AfterEach
  void close() {
    if (open != null) {
      open.close();
    }
    accelerator.close();
  }

  private Weights write(SafetensorsWriter writer) throws IOException {
    SafetensorsWriter.Layout layout = writer.layout(SafetensorsWriter.WORD);
    Path file = folder.resolve("m.safetensors");
    Files.write(file, Arrays.copyOf(layout.head(), (int) layout.fileBytes()));
    return open(file);
  }

  private Weights open(Path file) {
    Weights weights = Weights.open(StorageAddress.parse("file:" + file), accelerator);
    open = weights;
    return weights;
  }

  /** Tensors of a byte for each letter behind the name: {@code a.0.x=3 a.1.x=3}. */
  private Weights bytes(String tensors) throws IOException {
    SafetensorsWriter writer = new SafetensorsWriter();
    for (String one : tensors.split(" ")) {
      String[] parts = one.split("=");
      writer.tensor(parts[0], ElementType.U8, Long.parseLong(parts[1]));
    }
    return write(writer);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "model.layers.0.w=5 model.layers.1.w=5 embed=100         | model.layers.N    | 2 | 100",
        "h.0.w=5 h.1.w=5 wte=9                                   | h.N               | 2 | 9",
        "blk.0.w=5 blk.10.w=5 blk.9.w=5 output=9                 | blk.N             | 3 | 9",
        "0.weight=4 1.bias=4 2.weight=4                          | N                 | 3 | 0",
        "transformer.h.3.w=1                                     | transformer.h.N   | 1 | 0",
        // Experts are within their layers, whether or not the layers have anything else.
        "l.0.e.0=50 l.0.e.1=50 l.1.e.0=5 l.1.e.1=5 l.1.w=1       | l.N               | 2 | 0",
        "l.0.experts.0.w=5 l.0.experts.1.w=5 z=1                 | l.N               | 1 | 1",
        // Of two lists the larger one, though it comes later or is shorter.
        "encoder.block.0.w=5 encoder.block.1.w=5 decoder.block.0.w=11 | decoder.block.N | 1 | 10",
        // Not a number, and one that is too long for one.
        "l.0x.w=99 l.1.w=1 l.2.w=1 m.1234567890.w=9              | l.N               | 2 | 108"
      })
  void theListWithMostBytes(String tensors, String names, int count, long fixed)
      throws IOException {
    ModelLayers layers = ModelLayers.of(bytes(tensors), null);
    assertThat(layers.names()).isEqualTo(names);
    assertThat(layers.count()).isEqualTo(count);
    assertThat(layers.fixedBytes()).isEqualTo(fixed);
  }

  @Test
  void namesWithoutEndAreNotReadToTheirEnd() throws IOException {
    String deep = String.join(".", Collections.nCopies(20_000, "0"));
    assertThat(ModelLayers.of(bytes("a.0.w=1 " + deep + "=2"), null).names()).isEqualTo("N");
  }

  @ParameterizedTest
  @CsvSource({"embed=5", "l0.w=5", "l.0.w=0"})
  void aModelWithoutLayersIsRefused(String tensors) throws IOException {
    Weights weights = bytes(tensors);
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> ModelLayers.of(weights, null))
        .withMessageContaining("m.safetensors has no list of layers");
  }

  @Test
  void tensorsAreConvertedToWhatMostAre() throws IOException {
    SafetensorsWriter writer = new SafetensorsWriter();
    writer.tensor("l.0.w", ElementType.BF16, 1000);
    writer.tensor("l.0.norm", ElementType.F32, 200);
    writer.tensor("l.0.ids", ElementType.I64, 3000);
    writer.tensor("l.0.fp8", ElementType.F8_E4M3, 10);
    writer.tensor("norm", ElementType.F32, 10);
    Weights weights = write(writer);
    ModelLayers layers = ModelLayers.of(weights, null);
    assertThat(layers.type()).isEqualTo(ElementType.BF16);
    // In multiples of 512: 2000 and 800 bytes, 24000, and 10.
    assertThat(layers.sizes())
        .containsExactly(
            new LayerSize(
                2048 + 1024 + 24_064 + 512, 2048 + 512 + 24_064 + 512, 1024 + 512, 512 + 512));
    assertThat(layers.bytes()).isEqualTo(2000 + 800 + 24_000 + 10);
    assertThat(layers.fixedBytes()).isEqualTo(20);
    ModelLayers wide = ModelLayers.of(weights, ElementType.F32);
    assertThat(wide.sizes())
        .containsExactly(new LayerSize(27_648, 4096 + 1024 + 24_064 + 512, 2048 + 512, 4096 + 512));
    assertThat(wide.fixedBytes()).isEqualTo(40);
  }

  @Test
  void quantisedTensorsAreUsedAsBf16() throws IOException {
    GgufBytes file =
        GgufBytes.start(3, 0)
            .tensor("blk.0.w", ElementType.Q4_0.ggufId(), 0, 64, 32)
            .tensor("blk.0.norm", ElementType.F32.ggufId(), 64 / 32 * 32 * 18, 256)
            .tensor("token_embd", ElementType.Q8_0.ggufId(), 1152 + 1024, 32);
    byte[] head = file.pad(32).bytes();
    Path path = folder.resolve("m.gguf");
    Files.write(path, Arrays.copyOf(head, head.length + 1152 + 1024 + 64));
    Weights weights = open(path);
    ModelLayers layers = ModelLayers.of(weights, null);
    assertThat(layers.type()).isEqualTo(ElementType.BF16);
    assertThat(layers.sizes())
        .containsExactly(new LayerSize(1536 + 1024, 4096 + 512, 1536 + 1024, 4096 + 512));
    assertThat(layers.fixedBytes()).isEqualTo(64);
    assertThat(ModelLayers.of(weights, ElementType.F32).sizes())
        .containsExactly(new LayerSize(2560, 8192 + 1024, 1536, 8192));
  }

  @Test
  void layersAreReadAsALoaderDoes() throws IOException {
    SafetensorsWriter writer = new SafetensorsWriter();
    for (int i = 0; i < 5; i++) {
      writer.tensor("l." + i + ".w", ElementType.BF16, 100, 1000);
      writer.tensor("l." + i + ".none", ElementType.BF16, 0);
    }
    Weights weights = write(writer);
    ModelLayers layers = ModelLayers.of(weights, null);
    StreamPlan plan = StreamPlan.of(layers.sizes(), 0, 0, 3);
    LayerRate rate = LayerRate.measure(weights, layers, plan);
    assertThat(rate.bytes()).isEqualTo(4 * 200_000);
    assertThat(rate.nanos()).isPositive();
    assertThat(rate.path()).matches("(pinned|mmap)(, mmap)?");
    assertThat(rate.bytesPerSecond()).isEqualTo(800_000 * 1e9 / rate.nanos());
    List<LayerSize> sizes = layers.sizes();
    StreamPlan all = StreamPlan.of(sizes, 0, StreamPlan.EVERYTHING, StreamPlan.ANY_SLOTS);
    assertThatExceptionOfType(InvalidRequestException.class)
        .isThrownBy(() -> LayerRate.measure(weights, layers, all))
        .withMessageContaining("nothing to measure");
  }

  @Test
  void theOnlyLayerThatIsStreamedIsTimed() throws IOException {
    Weights weights = bytes("l.0.w=9000");
    ModelLayers layers = ModelLayers.of(weights, null);
    StreamPlan plan = StreamPlan.of(layers.sizes(), 0, 0, StreamPlan.ANY_SLOTS);
    assertThat(LayerRate.measure(weights, layers, plan).bytes()).isEqualTo(9000);
  }
}
