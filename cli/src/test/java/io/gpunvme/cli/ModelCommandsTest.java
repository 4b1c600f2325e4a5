package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.core.weights.format.ElementType;
import io.gpunvme.core.weights.format.SafetensorsWriter;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code inspect} and {@code load}. */
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

  @Test
  void loadSaysWhatItDidAndVerifies() {
    Path manifest = folder.resolve("manifest.json");
    String name = model.toString();
    json(
        run(
            "load",
            name,
            "--write-manifest",
            manifest.toString(),
            "--json",
            "--accelerator",
            "cpu"));
    JsonObject loaded =
        json(run("load", name, "--verify", manifest.toString(), "--json", "--accelerator", "cpu"));
    assertThat(loaded.get("verified").getAsInt()).isEqualTo(3);
    assertThat(loaded.get("bytes").getAsLong()).isEqualTo(2 * 65536 + 128);
    assertThat(loaded.get("path").getAsString()).isIn("pinned", "mmap");
    assertThat(
            run("load", name, "--write-manifest", manifest.toString(), "--accelerator", "cpu")
                .code())
        .isEqualTo(ExitCode.USAGE);
  }

  @Test
  void ranksArePlannedWithoutReading() {
    JsonObject plan =
        json(
            run(
                "load",
                model.toString(),
                "--rank",
                "1/4",
                "--plan",
                "--json",
                "--accelerator",
                "cpu"));
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
