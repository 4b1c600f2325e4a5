package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.SafetensorsWriter;
import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code write-model}, and {@code load} and {@code inspect} of what it wrote. */
class WriteModelCommandTest {
  private static final int IMAGE = 8 << 20;
  private static final int TENSOR = 300 * 1001;

  @TempDir Path folder;
  private Path model;
  private Path manifest;

  @BeforeEach
  void write() throws IOException {
    SafetensorsWriter writer = new SafetensorsWriter();
    writer.metadata("made", "here");
    writer.tensor("model.layers.0.w", ElementType.U8, 300, 1001);
    writer.tensor("model.layers.1.w", ElementType.U8, 300, 1001);
    writer.tensor("norm", ElementType.BF16, 64);
    SafetensorsWriter.Layout layout = writer.layout(SafetensorsWriter.WORD);
    byte[] file = new byte[(int) layout.fileBytes()];
    new Random(1).nextBytes(file);
    System.arraycopy(layout.head(), 0, file, 0, layout.head().length);
    model = Files.write(folder.resolve("m.safetensors"), file);
    manifest = folder.resolve("m.safetensors.manifest.json");
    cpu("weights", "manifest", model).succeeded();
  }

  private static Cli.Result cpu(Object... args) {
    List<Object> all = new ArrayList<>(Arrays.asList(args));
    all.add("--accelerator");
    all.add("cpu");
    return Cli.run(all.toArray());
  }

  private Path image(String name) throws IOException {
    return Files.write(folder.resolve(name), new byte[IMAGE]);
  }

  /** A GPT by somebody else's program. */
  private Path partitioned() throws IOException {
    Programs.need("fdisk", "sfdisk");
    Path disk = image("parts.img");
    Path script =
        Files.writeString(
            folder.resolve("table"), "label: gpt\nstart=2048, size=2048\nstart=4096, size=8192\n");
    Programs.run("sh", "-c", "/sbin/sfdisk -q '%s' < '%s'".formatted(disk, script));
    return disk;
  }

  /** Everything is there, by its own checksums and by those of the plain file. */
  private void requireModel(String device) {
    JsonObject own = cpu("load", "--device", device, "--verify", "--json").succeeded().json();
    assertThat(own.getAsJsonObject("total").get("verified").getAsInt()).isEqualTo(3);
    JsonObject plain =
        cpu("load", "--device", device, "--verify=" + manifest, "--json").succeeded().json();
    assertThat(plain.getAsJsonObject("total").get("verified").getAsInt()).isEqualTo(3);
    JsonObject shown = cpu("inspect", "--device", device, "--json").succeeded().json();
    assertThat(shown.get("format").getAsString()).contains("m.safetensors", "safetensors");
    assertThat(shown.getAsJsonObject("metadata").get("made").getAsString()).isEqualTo("here");
    assertThat(shown.getAsJsonArray("tensors")).hasSize(3);
  }

  @Test
  void toANamespace() throws IOException {
    String device = "sim:file=" + image("disk.img");
    JsonObject wrote =
        cpu("write-model", model, "--device", device, "--allow-write", "--verify", "--json")
            .succeeded()
            .json();
    assertThat(wrote.get("tensors").getAsInt()).isEqualTo(3);
    assertThat(wrote.get("verified").getAsInt()).isEqualTo(3);
    assertThat(wrote.get("bytes").getAsLong()).isEqualTo(2 * TENSOR + 128);
    assertThat(wrote.get("name").getAsString()).isEqualTo("m.safetensors");
    requireModel(device);
    assertThat(cpu("load", device).succeeded().out()).contains("3", "direct");
    assertThat(cpu("inspect", device, "--layers").succeeded().out()).contains("layer 1");
    // The image is a file like others, too.
    requireModel(folder.resolve("disk.img").toString());
    assertThat(cpu("inspect", folder.resolve("disk.img")).succeeded().out()).contains("made: here");
  }

  @Test
  void toAPartition() throws IOException {
    Path disk = partitioned();
    String device = "sim:file=" + disk + "#2";
    byte[] before = Files.readAllBytes(disk);
    cpu("write-model", model, "--device", "sim:file=" + disk, "--allow-write")
        .refused("a partition table (GPT)");
    cpu("write-model", model, "--device", "sim:file=" + disk + "#3", "--allow-write")
        .refused("no partition #3");
    String text =
        cpu("write-model", model, "--device", device, "--allow-write", "--order", "layers")
            .succeeded()
            .out();
    assertThat(text).contains(device, "GB/s", "UUID", "0 of 3");
    requireModel(device);
    requireModel(disk + "#2");
    byte[] after = Files.readAllBytes(disk);
    assertThat(Arrays.mismatch(before, after)).isEqualTo(4096 * 512);
    assertThat(Arrays.mismatch(before, 12288 * 512, IMAGE, after, 12288 * 512, IMAGE))
        .isEqualTo(-1);
    cpu("load", "--device", "sim:file=" + disk + "#1").failed(ExitCode.FAILURE, "write-model");
  }

  @Test
  void toAStripe() throws IOException {
    String device =
        "stripe:sim:file=%s,sim:file=%s;unit=64KiB".formatted(image("a.img"), image("b.img"));
    cpu("write-model", model, "--device", device, "--allow-write", "--name", "m.safetensors copy")
        .succeeded();
    requireModel(device);
    cpu("load", "--device", "sim:file=" + folder.resolve("b.img"))
        .failed(ExitCode.FAILURE, "no raw model");
  }

  @Test
  void whatIsMissingOrThereIsSaid() throws IOException {
    Path disk = image("disk.img");
    String device = "sim:file=" + disk;
    byte[] before = Files.readAllBytes(disk);
    cpu("write-model", model, "--device", device).refused("--allow-write");
    cpu("write-model", model, "--allow-write").refused("--device");
    cpu("write-model", folder.resolve("none"), "--device", device, "--allow-write")
        .refused("no such file");
    cpu("write-model", model, "--device", folder.resolve("none.img"), "--allow-write")
        .refused("no such file");
    cpu("write-model", model, "--device", device, "--allow-write", "--align", "1000")
        .refused("1000");
    cpu("write-model", model, "--device", device, "--allow-write", "--order", "names")
        .refused("neither file nor layers");
    cpu("write-model", model, "--device", device + ":/m", "--allow-write").refused("file system");
    cpu("write-model", model, "--device", model, "--allow-write").refused("itself");
    cpu("write-model", device + "#1:/m", "--device", device, "--allow-write").refused("is on");
    cpu("write-model", model, "--device", "sim:size=512KiB", "--allow-write")
        .failed(ExitCode.FAILURE, "needs");
    assertThat(Files.readAllBytes(disk)).isEqualTo(before);
    cpu("write-model", model, "--device", device, "--allow-write").succeeded();
    cpu("write-model", model, "--device", device, "--allow-write").refused("--overwrite");
    cpu("write-model", model, "--device", device, "--allow-write", "--overwrite").succeeded();
    requireModel(device);
    cpu("load").refused("MODEL");
  }

  /** By whatever name it is called. */
  @Test
  void aModelIsNotOverwrittenByItself() throws IOException {
    Path disk = image("disk.img");
    cpu("write-model", model, "--device", disk, "--allow-write").succeeded();
    Path link = Files.createSymbolicLink(folder.resolve("link.img"), disk);
    byte[] before = Files.readAllBytes(disk);
    byte[] plain = Files.readAllBytes(model);
    for (Object target : List.of(link, "sim:file=" + disk, "sim:file=" + link, disk + "#1")) {
      cpu("write-model", disk, "--device", target, "--allow-write", "--overwrite")
          .refused("itself");
    }
    cpu("write-model", "sim:file=" + disk, "--device", link, "--allow-write", "--overwrite")
        .refused("itself");
    String set = "stripe:sim:file=%s,sim:file=%s".formatted(image("other.img"), link);
    cpu("write-model", disk, "--device", set, "--allow-write", "--overwrite").refused("itself");
    Files.delete(manifest);
    Path models = Files.createDirectory(folder.resolve("models"));
    Path shard = Files.copy(model, models.resolve("m.safetensors"));
    cpu("write-model", models, "--device", shard, "--allow-write").refused("itself");
    assertThat(Files.readAllBytes(disk)).isEqualTo(before);
    assertThat(Files.readAllBytes(shard)).isEqualTo(plain);
  }

  @ParameterizedTest
  @ValueSource(strings = {"TERM", "KILL"})
  void endedHalfWayItLeavesNoModel(String signal) throws Exception {
    Path disk = image("disk.img");
    String device = "sim:file=" + disk;
    cpu("write-model", model, "--device", device, "--allow-write").succeeded();
    List<String> command =
        List.of(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "--enable-native-access=ALL-UNNAMED",
            "-cp",
            System.getProperty("java.class.path"),
            "io.gpunvme.cli.Main",
            "write-model",
            model.toString(),
            "--device",
            // Each command takes so long that there is time to end it.
            device + ",latency=2s",
            "--allow-write",
            "--overwrite",
            "--accelerator",
            "cpu");
    Path log = folder.resolve("log");
    Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
    try {
      awaitInvalid(process, disk, log);
      new ProcessBuilder("kill", "-" + signal, Long.toString(process.pid())).start().waitFor();
      assertThat(process.waitFor(2, TimeUnit.MINUTES)).isTrue();
      assertThat(process.exitValue()).isEqualTo(128 + (signal.equals("KILL") ? 9 : 15));
    } finally {
      process.destroyForcibly();
    }
    cpu("load", "--device", device).failed(ExitCode.FAILURE, "no raw model");
    cpu("load", "--device", disk).failed(ExitCode.FAILURE, "no raw model");
  }

  /** An image that was never written, or whose writing was interrupted, is no safetensors file. */
  @Test
  void anEmptyImageHasNoRawModel() throws IOException {
    for (String name : List.of("disk.img", "disk")) {
      cpu("inspect", "--device", image(name)).failed(ExitCode.FAILURE, "no raw model");
    }
    cpu("inspect", image("empty.safetensors")).failed(ExitCode.FAILURE, "not a safetensors file");
  }

  /** Until what was there is no model any more: the first thing that is written. */
  private static void awaitInvalid(Process process, Path disk, Path log) throws Exception {
    long deadline = System.nanoTime() + Duration.ofMinutes(2).toNanos();
    while (process.isAlive() && System.nanoTime() < deadline) {
      try (RandomAccessFile file = new RandomAccessFile(disk.toFile(), "r")) {
        if (file.read() == 0) {
          return;
        }
      }
      process.waitFor(10, TimeUnit.MILLISECONDS);
    }
    throw new AssertionError("it has not begun: " + Files.readString(log));
  }
}
