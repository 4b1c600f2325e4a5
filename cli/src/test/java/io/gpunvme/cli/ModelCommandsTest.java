package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.SafetensorsWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code inspect}, {@code load} and {@code weights}. */
class ModelCommandsTest {
  @TempDir Path folder;
  private Path model;

  @BeforeEach
  void write() throws IOException {
    SafetensorsWriter writer = new SafetensorsWriter();
    writer.metadata("made", "here");
    writer.tensor("model.layers.0.w", ElementType.F32, 64, 256);
    writer.tensor("model.layers.1.w", ElementType.F32, 64, 256);
    writer.tensor("norm", ElementType.BF16, 64);
    SafetensorsWriter.Layout layout = writer.layout(SafetensorsWriter.WORD);
    byte[] file = new byte[(int) layout.fileBytes()];
    new Random(1).nextBytes(file);
    System.arraycopy(layout.head(), 0, file, 0, layout.head().length);
    model = Files.write(folder.resolve("m.safetensors"), file);
  }

  private static JsonObject json(Cli.Result run) {
    assertThat(run.code()).as(run.err()).isZero();
    return JsonParser.parseString(run.out()).getAsJsonObject();
  }

  private Cli.Result run(Object... args) {
    return Cli.run(args);
  }

  @Test
  void inspectShowsTensorsAndLayers() {
    Cli.Result text = run("inspect", model.toString(), "--accelerator", "cpu");
    assertThat(text.code()).isZero();
    assertThat(text.out()).contains("3 tensors", "made: here", "model.layers.1.w", "[64, 256]");
    assertThat(run("inspect", folder.toString(), "--layers", "--accelerator", "cpu").out())
        .contains("layer 0", "layer 1", "in no layer");
    JsonObject all = json(run("inspect", model.toString(), "--json", "--accelerator", "cpu"));
    assertThat(all.getAsJsonArray("tensors")).hasSize(3);
  }

  private JsonObject only(Cli.Result run) {
    assertThat(json(run).getAsJsonArray("models")).hasSize(1);
    return json(run).getAsJsonArray("models").get(0).getAsJsonObject();
  }

  @Test
  void loadSaysWhatItDidAndVerifies() throws IOException {
    Path manifest = folder.resolve("own.json");
    String name = model.toString();
    JsonObject made =
        json(cpu("weights", "manifest", name, "--out", manifest.toString(), "--json"));
    assertThat(made.get("tensors").getAsInt()).isEqualTo(3);
    JsonObject loaded = only(cpu("load", name, "--verify", manifest.toString(), "--json"));
    assertThat(loaded.get("verified").getAsInt()).isEqualTo(3);
    assertThat(loaded.get("bytes").getAsLong()).isEqualTo(2 * 65536 + 128);
    assertThat(loaded.get("path").getAsString()).isIn("pinned", "mmap");
    byte[] before = Files.readAllBytes(manifest);
    cpu("weights", "manifest", name, "--out", manifest.toString()).refused("own.json exists");
    assertThat(Files.readAllBytes(manifest)).isEqualTo(before);
  }

  @Test
  void manifestsLieBesideTheirModels() throws IOException {
    String name = model.toString();
    cpu("load", name, "--verify").refused("gpunvme weights manifest " + name);
    json(cpu("weights", "manifest", name, "--json"));
    assertThat(folder.resolve("m.safetensors.manifest.json")).exists();
    assertThat(only(cpu("load", "--json", name, "--verify")).get("verified").getAsInt())
        .isEqualTo(3);
    Files.delete(folder.resolve("m.safetensors.manifest.json"));
    assertThat(cpu("weights", "manifest", folder.toString()).succeeded().out())
        .contains("model.manifest.json: CRC-32C of 3 tensors");
    assertThat(
            only(cpu("load", folder.toString(), "--verify", "--json")).get("verified").getAsInt())
        .isEqualTo(3);
    Files.copy(folder.resolve("model.manifest.json"), folder.resolve("b.manifest.json"));
    cpu("load", folder.toString(), "--verify").refused("several manifests");
    assertThat(folder).isDirectoryNotContaining("glob:**.part");
    // Which word is whose is not obvious there.
    cpu("load", "--verify", name).refused("--verify=FILE");
    String disk = folder.resolve("disk.img").toString();
    cpu("load", "--device", disk, "--verify", name)
        .refused(
            "the JSON is not valid UTF-8 (near $); write --verify=FILE, or --verify after MODEL");
    cpu("load", "--device", disk, "--verify", "/x.gguf")
        .refused("no such file; write --verify=FILE");
    Cli.run("weights").refused("manifest");
  }

  @Test
  void aChangedModelIsFound() throws IOException {
    json(cpu("weights", "manifest", model.toString(), "--json"));
    byte[] bytes = Files.readAllBytes(model);
    bytes[bytes.length - 5] ^= 1;
    Files.write(model, bytes);
    cpu("load", model.toString(), "--verify").failed(ExitCode.FAILURE, "CRC-32C");
  }

  @Test
  void severalModelsAreLoadedAndKept() throws IOException {
    SafetensorsWriter writer = new SafetensorsWriter();
    writer.tensor("adapter", ElementType.F32, 32, 32);
    SafetensorsWriter.Layout layout = writer.layout(SafetensorsWriter.WORD);
    Path second = folder.resolve("adapter.safetensors");
    Files.write(second, Arrays.copyOf(layout.head(), (int) layout.fileBytes()));
    JsonObject all = json(cpu("load", model.toString(), second.toString(), "--json"));
    assertThat(all.getAsJsonArray("models")).hasSize(2);
    JsonObject total = all.getAsJsonObject("total");
    assertThat(total.get("tensors").getAsInt()).isEqualTo(4);
    assertThat(total.get("bytes").getAsLong()).isEqualTo(2 * 65536 + 128 + 4096);
    assertThat(cpu("load", model.toString(), second.toString()).succeeded().out())
        .contains("model", "m.safetensors", "adapter.safetensors", "total");
    JsonObject plans = json(cpu("load", model.toString(), second.toString(), "--plan", "--json"));
    assertThat(plans.getAsJsonArray("models")).hasSize(2);
    // Both of them are kept.
    cpu("load", model.toString(), second.toString(), "--max-memory", "130KiB")
        .failed(ExitCode.FAILURE, "more than the 133120 allowed");
    cpu("load", model.toString(), second.toString(), "--verify=x").refused("of one model");
  }

  @Test
  void ordersAreGivenByNames() throws IOException {
    JsonObject plan = plan("--order", "norm,layers.1");
    assertThat(names(plan)).containsExactly("norm", "model.layers.1.w");
    Path file = Files.writeString(folder.resolve("order"), "layers.1\n\n model.layers.0.w\n");
    assertThat(names(plan("--order", "@" + file)))
        .containsExactly("model.layers.1.w", "model.layers.0.w");
    assertThat(names(plan("--order", "layers")))
        .containsExactly("model.layers.0.w", "model.layers.1.w", "norm");
    cpu("load", model.toString(), "--order", "layers.7").refused("no tensor or layer 'layers.7'");
    cpu("load", model.toString(), "--order", "norm,norm").refused("twice");
    cpu("load", model.toString(), "--order", "@" + folder.resolve("none")).refused("no such file");
    cpu("load", model.toString(), "--order", ",").refused("names nothing");
  }

  private JsonObject plan(Object... options) {
    List<Object> all = new ArrayList<>(List.of("load", model.toString(), "--plan", "--json"));
    all.addAll(Arrays.asList(options));
    return only(cpu(all.toArray()));
  }

  private static List<String> names(JsonObject plan) {
    return plan.getAsJsonArray("list").asList().stream()
        .map(t -> t.getAsJsonObject().get("name").getAsString())
        .toList();
  }

  /** Without a GPU, wherever there is one. */
  private static Cli.Result cpu(Object... args) {
    List<Object> all = new ArrayList<>(Arrays.asList(args));
    all.add("--accelerator");
    all.add("cpu");
    return Cli.run(all.toArray());
  }

  @Test
  void streamingIsPlannedWithoutReading() throws IOException {
    String name = model.toString();
    // A ring of four slots of 64 KiB, or of two, and a page; the norm has 128 bytes.
    Cli.Result none = cpu("plan-model", name, "--gpu-budget", "0", "--rate", "0.5GB/s");
    assertThat(none.succeeded().out())
        .contains(
            "2 layers 'model.layers.N' of 128KiB, used as F32; 256B in no layer",
            "0 of 2 layers stay; the others go through a ring of 4 slots of 64KiB, 2 reads at a"
                + " time",
            "reads 128KiB: at 0.50 GB/s 0.262 ms at least")
        .doesNotContain("a budget is");
    JsonObject all =
        json(cpu("plan-model", name, "--gpu-budget", "0", "--compute", "1s", "--json"));
    assertThat(all.get("layers").getAsInt()).isEqualTo(2);
    assertThat(all.get("slots").getAsInt()).isEqualTo(4);
    assertThat(all.get("slot_bytes").getAsLong()).isEqualTo(65536);
    assertThat(all.get("ring_bytes").getAsLong()).isEqualTo(4 * 65536 + 4096);
    assertThat(all.get("fixed_bytes").getAsLong()).isEqualTo(256);
    assertThat(all.get("device_bytes").getAsLong()).isEqualTo(4 * 65536 + 4096 + 256);
    assertThat(all.get("pass_bytes").getAsLong()).isEqualTo(2 * 65536);
    assertThat(all.get("reads_in_flight").getAsInt()).isEqualTo(2);
    assertThat(all.getAsJsonArray("resident")).isEmpty();
    assertThat(all.get("bytes_per_second").isJsonNull()).isTrue();
    assertThat(all.get("token_seconds").isJsonNull()).isTrue();
    assertThat(cpu("plan-model", name, "--gpu-budget", "0").succeeded().out())
        .contains("at 10 GB/s", "--measure");
    assertThat(
            cpu("plan-model", name, "--gpu-budget", "0", "--rate", "1GB/s", "--compute", "1s")
                .succeeded()
                .out())
        .contains("1.000 s at least; compute is the limit, reading takes 0.131 ms");
  }

  @Test
  void withoutABudgetEverythingStays() throws IOException {
    String name = model.toString();
    assertThat(cpu("plan-model", folder.toString()).succeeded().out())
        .contains("all layers stay: 128.25KiB of GPU memory at most; nothing is streamed");
    JsonObject all = json(cpu("plan-model", name, "--compute", "20ms", "--measure", "--json"));
    assertThat(all.get("budget").isJsonNull()).isTrue();
    assertThat(all.getAsJsonArray("resident")).hasSize(2);
    assertThat(all.get("limit").getAsString()).isEqualTo("nothing_streamed");
    assertThat(all.get("token_seconds").getAsDouble()).isEqualTo(0.02);
    assertThat(all.get("path").isJsonNull()).isTrue();
    // As BF16 each layer takes half, and is converted from what it is stored as.
    JsonObject half = json(cpu("plan-model", name, "--dtype", "bf16", "--json"));
    assertThat(half.get("dtype").getAsString()).isEqualTo("BF16");
    assertThat(half.get("device_bytes").getAsLong()).isEqualTo(128 + 65536 + 65536);
  }

  /** Three layers, of which the first is dense and the last has wider experts. */
  private Path mixture() throws IOException {
    SafetensorsWriter writer = new SafetensorsWriter();
    for (int layer = 0; layer < 3; layer++) {
      String prefix = "model.layers." + layer + ".";
      writer.tensor(prefix + "norm", ElementType.F32, 1024);
      int wide = layer == 2 ? 64 : 32;
      for (int i = 0; i < 4 && layer > 0; i++) {
        String expert = prefix + "mlp.experts." + i;
        writer.tensor(expert + ".gate_proj.weight", ElementType.F32, wide, 64);
        writer.tensor(expert + ".up_proj.weight", ElementType.F32, wide, 64);
        writer.tensor(expert + ".down_proj.weight", ElementType.F32, 64, wide);
      }
      if (layer > 0) {
        writer.tensor(prefix + "mlp.gate.weight", ElementType.F32, 4, 64);
      }
    }
    SafetensorsWriter.Layout layout = writer.layout(SafetensorsWriter.WORD);
    Path own = Files.createDirectory(folder.resolve("mixture"));
    byte[] file = Arrays.copyOf(layout.head(), (int) layout.fileBytes());
    return Files.write(own.resolve("model.safetensors"), file).getParent();
  }

  /** An expert has 24 KiB in one layer, and 48 in the other. */
  @Test
  void ofExpertsThoseAreReadThatAreChosen() throws IOException {
    Path mixture = mixture();
    Files.writeString(mixture.resolve("config.json"), "{\"num_experts_per_tok\": 2}");
    String name = mixture.toString();
    JsonObject all =
        json(cpu("plan-model", name, "--gpu-budget", "0", "--rate", "0.001GB/s", "--json"));
    assertThat(all.get("pass_bytes").getAsLong()).isEqualTo(3 * 4096 + 2 * 1024);
    assertThat(all.get("slot_bytes").getAsLong()).isEqualTo(8192);
    assertThat(all.get("device_bytes").getAsLong())
        .isEqualTo(4 * 8192 + 4096 + 2 * 196_608 + 4096 + 2048);
    JsonObject experts = all.getAsJsonObject("experts");
    assertThat(experts)
        .hasToString(
            "{\"per_token\":2,\"slots\":2,\"slot_bytes\":196608,\"ring_bytes\":397312,"
                + "\"router_bytes\":2048,\"least_token_bytes\":147456,"
                + "\"most_token_bytes\":147456,\"bytes\":294912,\"layers\":["
                + "{\"layer\":1,\"experts\":4,\"expert_bytes\":24576,"
                + "\"least_token_bytes\":49152,\"most_token_bytes\":49152},"
                + "{\"layer\":2,\"experts\":4,\"expert_bytes\":49152,"
                + "\"least_token_bytes\":98304,\"most_token_bytes\":98304}]}");
    assertThat(all.get("read_seconds").getAsDouble()).isEqualTo((14_336 + 147_456) / 1e6);
    assertThat(cpu("plan-model", name, "--gpu-budget", "0").succeeded().out())
        .contains(
            "36KiB ring, 388KiB ring of experts, 2KiB of routers, 0B for conversions)",
            "experts: 2 of 4 in 2 layers, 96KiB of 192KiB in each at most; for a token 144KiB of"
                + " 288KiB, through a second ring of 2 slots of 192KiB",
            "reads 158KiB (14KiB and experts): at 10 GB/s 0.016 ms at least");
    assertThat(cpu("plan-model", name, "--gpu-budget", "0", "--measure").succeeded().out())
        .contains("(measured with 10KiB,");
    JsonObject stays = json(cpu("plan-model", name, "--json")).getAsJsonObject("experts");
    assertThat(stays.get("slots").getAsInt()).isZero();
    assertThat(stays.getAsJsonArray("layers")).isEmpty();
    assertThat(json(cpu("plan-model", model.toString(), "--json")).get("experts").isJsonNull())
        .isTrue();
  }

  @Test
  void howManyExpertsAreChosenMayBeUnknown() throws IOException {
    String name = mixture().toString();
    JsonObject all =
        json(cpu("plan-model", name, "--gpu-budget", "0", "--rate", "0.001GB/s", "--json"));
    JsonObject experts = all.getAsJsonObject("experts");
    assertThat(experts.get("per_token").isJsonNull()).isTrue();
    assertThat(experts.get("least_token_bytes").getAsLong()).isEqualTo(73_728);
    assertThat(experts.get("most_token_bytes").getAsLong()).isEqualTo(294_912);
    assertThat(all.get("read_seconds").getAsDouble()).isEqualTo((14_336 + 73_728) / 1e6);
    assertThat(cpu("plan-model", name, "--gpu-budget", "0").succeeded().out())
        .contains(
            "experts: 1 to 4 of 4 (nothing says how many) in 2 layers, 48KiB to 192KiB of 192KiB in"
                + " each at most; for a token 72KiB to 288KiB of 288KiB",
            "reads 86KiB to 302KiB (14KiB and experts)");
  }

  @Test
  void theRateOfLayersIsMeasured() throws IOException {
    String name = model.toString();
    JsonObject all = json(cpu("plan-model", name, "--gpu-budget", "0", "--measure", "--json"));
    assertThat(all.get("measured_bytes").getAsLong()).isEqualTo(65536);
    assertThat(all.get("bytes_per_second").getAsLong()).isPositive();
    assertThat(all.get("path").getAsString()).matches("(pinned|mmap)(, mmap)?");
    assertThat(all.get("limit").getAsString()).isEqualTo("reading");
    assertThat(cpu("plan-model", name, "--gpu-budget", "0", "--measure").succeeded().out())
        .containsPattern("GB/s \\(measured with 64KiB, by path \\w+, to .*\\)");
  }

  @Test
  void whatCannotBePlannedIsSaid() throws IOException {
    String name = model.toString();
    cpu("plan-model", name, "--gpu-budget", "100KiB")
        .refused(name + ": a budget of 102400 bytes is not enough; 131328 are");
    cpu("plan-model", name, "--slots", "1").refused("a ring has 2 slots at least");
    cpu("plan-model", folder.resolve("none").toString()).refused("none: no such file");
    SafetensorsWriter writer = new SafetensorsWriter();
    writer.tensor("adapter", ElementType.F32, 32);
    SafetensorsWriter.Layout layout = writer.layout(SafetensorsWriter.WORD);
    Path other = folder.resolve("other.safetensors");
    Files.write(other, Arrays.copyOf(layout.head(), (int) layout.fileBytes()));
    cpu("plan-model", other.toString()).refused("other.safetensors has no list of layers");
    Files.write(other, new byte[100]);
    assertThat(cpu("plan-model", other.toString()).code()).isEqualTo(ExitCode.FAILURE);
  }

  @Test
  void ranksArePlannedWithoutReading() {
    JsonObject plan = plan("--rank", "1/4");
    assertThat(plan.get("bytes").getAsLong()).isEqualTo((2 * 65536 + 128) / 4);
    assertThat(plan.get("read_bytes")).isEqualTo(plan.get("bytes"));
  }

  @Test
  void whatMakesNoSenseIsSaid() throws IOException {
    assertThat(run("load", model.toString(), "--rank", "4", "--accelerator", "cpu").code())
        .isEqualTo(ExitCode.USAGE);
    assertThat(run("load", folder.resolve("none").toString()).code()).isEqualTo(ExitCode.USAGE);
    Cli.Result small =
        run("load", model.toString(), "--max-memory", "64KiB", "--accelerator", "cpu");
    assertThat(small.code()).isEqualTo(ExitCode.FAILURE);
    assertThat(small.err()).contains("more than the 65536 allowed");
    Path broken = Files.write(folder.resolve("broken.safetensors"), new byte[100]);
    Cli.Result bad = run("inspect", broken.toString(), "--accelerator", "cpu");
    assertThat(bad.code()).isEqualTo(ExitCode.FAILURE);
    assertThat(bad.err()).contains("broken.safetensors").doesNotContain("unexpected");
  }
}
