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
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Which tensors are layers, how large these are, and how fast they are read. */
class ModelLayersTest {
  @TempDir Path folder;

  private final CpuAccelerator accelerator = CpuAccelerator.open();
  private final List<Weights> open = new ArrayList<>();

  @AfterEach
  void close() {
    open.forEach(Weights::close);
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
    open.add(weights);
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

  /** A file may have as many as it likes, and each is asked for. */
  @Test
  @Timeout(60)
  void manyLayersAreFoundInTheirOrder() throws IOException {
    int count = 100_000;
    SafetensorsWriter writer = new SafetensorsWriter();
    for (int i = 0; i < count; i++) {
      writer.tensor("l." + i + ".w", ElementType.U8, 1);
    }
    ModelLayers layers = ModelLayers.of(write(writer), null).expertsApart();
    assertThat(layers.count()).isEqualTo(count);
    for (int i = 0; i < count; i++) {
      assertThat(layers.tensors(i)).containsExactly(new TensorPlace("l." + i + ".w", null, 0));
    }
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

  /** A mixture of Qwen's or Mixtral's: 3 experts, 8 wide, of hidden size 100. */
  private static SafetensorsWriter mixture(String block, String gate, String up, String down) {
    return mixture(block, gate, up, down, ElementType.BF16);
  }

  private static SafetensorsWriter mixture(
      String block, String gate, String up, String down, ElementType type) {
    SafetensorsWriter writer = new SafetensorsWriter();
    writer.tensor("l.0." + block + "shared_expert.gate_proj.weight", ElementType.BF16, 3, 100);
    for (int i = 0; i < 3; i++) {
      String expert = "l.0." + block + "experts." + i + ".";
      writer.tensor(expert + gate + ".weight", type, 8, 100);
      writer.tensor(expert + up + ".weight", type, 8, 100);
      writer.tensor(expert + down + ".weight", type, 100, 8);
    }
    writer.tensor("l.0." + block + "gate.weight", ElementType.BF16, 3, 100);
    return writer;
  }

  /** The experts of gate and up have 9600 bytes together, those of down 4800. */
  @ParameterizedTest
  @CsvSource({"mlp., gate_proj, up_proj, down_proj", "block_sparse_moe., w1, w3, w2"})
  void expertsThatAreStoredOneByOneAreApart(String block, String gate, String up, String down)
      throws IOException {
    ModelLayers whole = ModelLayers.of(write(mixture(block, gate, up, down)), null);
    assertThat(whole.experts(0)).isNull();
    assertThat(whole.sizes()).containsExactly(LayerSize.of(2 * 1024 + 9 * 2048));
    ModelLayers apart = whole.expertsApart();
    assertThat(apart.sizes())
        .containsExactly(new LayerSize(2048, 2048 + 9728 + 5120, 0, 0, 9728 + 5120, 1024));
    LayerExperts experts = apart.experts(0);
    assertThat(experts).isNotNull();
    assertThat(experts.count()).isEqualTo(3);
    assertThat(experts.bytes()).isEqualTo(4800);
    // What is read with the layer.
    assertThat(apart.tensors(0)).hasSize(2);
    assertThat(apart.bytes()).isEqualTo(whole.bytes());
  }

  @Test
  void expertsAreConvertedOneByOne() throws IOException {
    Weights weights = write(mixture("mlp.", "w1", "w3", "w2", ElementType.F32));
    // Each expert's gate and up, as BF16, lie beside all of them for a moment.
    assertThat(ModelLayers.of(weights, ElementType.BF16).expertsApart().sizes())
        .containsExactly(
            new LayerSize(
                2048, 2048 + 9728 + 5120, 19_456 + 9728, 9728 + 5120 + 3200, 19_456 + 9728, 1024));
  }

  @Test
  void scalesGoWithTheirExperts() throws IOException {
    SafetensorsWriter writer = new SafetensorsWriter();
    writer.tensor("l.0.w", ElementType.BF16, 5000);
    for (int i = 0; i < 2; i++) {
      for (String one : List.of("gate_proj", "up_proj", "down_proj")) {
        boolean down = one.equals("down_proj");
        String name = "l.0.experts." + i + "." + one + ".weight";
        writer.tensor(name, ElementType.F8_E4M3, down ? 256 : 128, down ? 128 : 256);
        writer.tensor(name + "_scale_inv", ElementType.F32, down ? 2 : 1, down ? 1 : 2);
      }
    }
    ModelLayers layers = ModelLayers.of(write(writer), null);
    ModelLayers apart = layers.expertsApart();
    long stored = 4 * 32_768 + 512 + 2 * 32_768 + 512;
    long used = 6 * 65_536;
    assertThat(apart.sizes())
        .containsExactly(
            new LayerSize(10_240, 10_240 + used, stored, used + 2 * 65_536, stored, 0));
    assertThat(apart.experts(0).bytes()).isEqualTo(3 * (32_768 + 8));
    // With its layer a tensor and its scales are read, and the scales are no parameter.
    assertThat(layers.sizes())
        .containsExactly(
            new LayerSize(10_240 + 6 * (32_768 + 512), 10_240 + used, 6 * 33_280, used));
  }

  /** Experts that are not one known part for each go with their layer, as Python's load has it. */
  @ParameterizedTest
  @ValueSource(
      strings = {
        // Stacks lie the other way round (Llama 4), have biases (gpt-oss), are no stacks,
        "e.experts.gate_up_proj=3x8x32 e.experts.down_proj=3x16x8",
        "e.experts.gate_up_proj=3x32x8 e.experts.down_proj=3x8x16 e.experts.down_proj_bias=3x8",
        "e.experts.gate_up_proj=96x8 e.experts.down_proj=24x16",
        // do not fit each other, or are of different numbers of experts, or of one.
        "e.experts.gate_up_proj=3x30x8 e.experts.down_proj=3x8x16",
        "e.experts.gate_up_proj=3x32x8 e.experts.down_proj=2x8x16",
        "e.experts.gate_up_proj=1x32x8 e.experts.down_proj=1x8x16",
        // Neither gate nor up, no down, both names, and two blocks.
        "e.experts.gate_proj=3x32x8 e.experts.down_proj=3x8x16",
        "e.experts.gate_up_proj=3x32x8",
        "ffn_gate_exps.weight=3x4x8 ffn_down_exps.weight=3x8x4",
        "e.experts.gate_up_proj=3x32x8 e.experts.down_proj=3x8x16 ffn_gate_exps.weight=3x4x8",
        "e.experts.gate_up_proj=3x32x8 f.experts.down_proj=3x8x16",
        // One of two is missing, is of another shape, or has a name that is not known.
        "e.experts.0.w1.weight=4x8 e.experts.0.w3.weight=4x8 e.experts.0.w2.weight=8x4"
            + " e.experts.2.w1.weight=4x8 e.experts.2.w3.weight=4x8 e.experts.2.w2.weight=8x4",
        "e.experts.0.w1.weight=4x8 e.experts.0.w3.weight=4x8 e.experts.0.w2.weight=8x4"
            + " e.experts.1.w1.weight=5x8 e.experts.1.w3.weight=4x8 e.experts.1.w2.weight=8x4",
        "e.experts.0.fc.weight=4x8 e.experts.1.fc.weight=4x8",
      })
  void expertsThatAreNotKnownGoWithTheirLayer(String tensors) throws IOException {
    ModelLayers layers = ModelLayers.of(write(shapes("norm=7 " + tensors)), null);
    assertThat(layers.expertsApart().experts(0)).isNull();
    assertThat(layers.expertsApart().sizes()).isEqualTo(layers.sizes());
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "e.experts.gate_up_proj=3x32x8 e.experts.down_proj=3x8x16",
        "ffn_gate_exps.weight=3x16x8 ffn_up_exps.weight=3x16x8 ffn_down_exps.weight=3x8x16"
      })
  void stacksOfExpertsAreApart(String tensors) throws IOException {
    // Shared ones, whose name has it, biases and what is elsewhere are no routers.
    String more = "norm=7 e.shared.weight=3x9 e.gate.bias=3 e.other=4x8 x.gate.weight=3x8 ";
    String router = tensors.startsWith("e.") ? "e.gate.weight=3x8 " : "ffn_gate_inp.weight=3x8 ";
    ModelLayers apart = ModelLayers.of(write(shapes(more + router + tensors)), null).expertsApart();
    assertThat(apart.experts(0).count()).isEqualTo(3);
    assertThat(apart.experts(0).bytes()).isEqualTo(3 * 16 * 8 * 4);
    assertThat(apart.sizes())
        .containsExactly(new LayerSize(6 * 512, 6 * 512 + 3072 + 1536, 0, 0, 3072 + 1536, 512));
    ModelLayers none = ModelLayers.of(write(shapes(more + tensors)), null).expertsApart();
    assertThat(none.sizes().getFirst().router()).isZero();
    // Nothing but experts: a layer that is not streamed without them.
    assertThat(ModelLayers.of(write(shapes(tensors)), null).expertsApart().experts(0)).isNull();
  }

  @Test
  void scalesOfTheRouterAreNotTheRouter() throws IOException {
    String scales = "e.gate.weight_scale=3x200 e.gate.weight=3x8 ";
    String experts = "e.experts.gate_up_proj=3x32x8 e.experts.down_proj=3x8x16";
    ModelLayers apart = ModelLayers.of(write(shapes(scales + experts)), null).expertsApart();
    assertThat(apart.sizes().getFirst().router()).isEqualTo(512);
  }

  /** Of F32, in layer 0: {@code a=3x4}. */
  private static SafetensorsWriter shapes(String tensors) {
    SafetensorsWriter writer = new SafetensorsWriter();
    for (String one : tensors.split(" ")) {
      String[] parts = one.split("=");
      long[] shape = Arrays.stream(parts[1].split("x")).mapToLong(Long::parseLong).toArray();
      writer.tensor("l.0." + parts[0], ElementType.F32, shape);
    }
    return writer;
  }

  @Test
  void layersWithTwoNamesHaveNoExpertsThatAreKnown() throws IOException {
    SafetensorsWriter writer =
        shapes("n=7 e.experts.gate_up_proj=3x32x8 e.experts.down_proj=3x8x16");
    writer.tensor("l.00.n", ElementType.F32, 1);
    writer.tensor("l.0", ElementType.F32, 1);
    assertThat(ModelLayers.of(write(writer), null).expertsApart().experts(0)).isNull();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "{\"num_experts_per_tok\": 2, \"x\": [0, Infinity]}          | 2",
        "{\"text_config\": {\"num_experts_per_tok\": 8}, \"a\": 1}  | 8",
        "{\"num_experts_per_tok\": null}                           | 0",
        "{\"num_experts_per_tok\": \"2\"}                          | 0",
        "{\"num_experts_per_tok\": null, \"text_config\": {\"num_experts_per_tok\": 6}} | 6",
        "{\"num_experts_per_tok\": 8.0}                            | 8",
        "{\"num_experts_per_tok\": 8.5}                            | 0",
        "{\"num_experts_per_tok\": 1e99}                           | 0",
        "{\"num_experts_per_tok\": -1}                             | 0",
        "{\"num_experts_per_tok\": 3000000000}                     | 0",
        "{\"num_experts\": 8}                                      | 0",
        "[2]                                                       | 0",
        "{\"num_experts_per_tok\": 2                               | 0",
        "''                                                        | 0",
      })
  void theConfigurationSaysHowManyExpertsATokenHas(String config, int count) throws IOException {
    Files.writeString(folder.resolve("config.json"), config);
    assertThat(ModelLayers.of(bytes("l.0.w=1"), null).expertsPerToken().orElse(0)).isEqualTo(count);
  }

  @Test
  void withoutAConfigurationNobodyKnows() throws IOException {
    Weights weights = bytes("l.0.w=1");
    assertThat(ModelLayers.of(weights, null).expertsPerToken()).isEmpty();
    Files.write(folder.resolve("config.json"), new byte[(1 << 20) + 1]);
    assertThat(ModelLayers.of(weights, null).expertsPerToken()).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({"qwen3moe.expert_used_count, 8", "llama.expert_used_count, 0", "qwen3moe.x, 0"})
  void aGgufFileSaysItItself(String key, int count) throws IOException {
    Files.writeString(folder.resolve("config.json"), "{\"num_experts_per_tok\": 2}");
    GgufBytes file =
        GgufBytes.start(1, 2)
            .key("general.architecture", GgufBytes.STRING)
            .text("qwen3moe")
            .u32(key, 8)
            .tensor("blk.0.w", ElementType.F32.ggufId(), 0, 8);
    byte[] head = file.pad(32).bytes();
    Path path = folder.resolve("m.gguf");
    Files.write(path, Arrays.copyOf(head, head.length + 32));
    assertThat(ModelLayers.of(open(path), null).expertsPerToken().orElse(0)).isEqualTo(count);
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
