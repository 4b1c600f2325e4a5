package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.models.LoadListener;
import io.gpunvme.models.Manifest;
import io.gpunvme.models.Weights;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.SafetensorsWriter;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.testing.Images;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * {@code load} and {@code inspect} of a model in a file system that no kernel mounts: with
 * checksums taken from the plain file.
 */
class DeviceModelCommandsTest {
  private static final int UNIT = 64 << 10;

  @TempDir static Path folder;
  private static Path model;
  private static Path manifest;

  @BeforeAll
  static void make() throws IOException {
    SafetensorsWriter writer = new SafetensorsWriter();
    for (int i = 0; i < 8; i++) {
      writer.tensor("model.layers." + i + ".w", ElementType.F16, 256, 520);
    }
    writer.tensor("norm", ElementType.F32, 77);
    writer.tensor("nothing", ElementType.F32, 0, 4);
    SafetensorsWriter.Layout layout = writer.layout(SafetensorsWriter.WORD);
    byte[] bytes = new byte[(int) layout.fileBytes()];
    new Random(9).nextBytes(bytes);
    System.arraycopy(layout.head(), 0, bytes, 0, layout.head().length);
    Path source = Files.createDirectory(folder.resolve("source"));
    Path models = Files.createDirectory(source.resolve("models"));
    model = Files.write(models.resolve("m.safetensors"), bytes);
    manifest = folder.resolve("manifest.json");
    try (Accelerator cpu = CpuAccelerator.open();
        Weights plain = Weights.open(StorageAddress.parse("file:" + model), cpu)) {
      Manifest sums = plain.manifest(LoadListener.NONE);
      Files.writeString(manifest, sums.toJson() + "\n");
    }
    Images.ext4(folder.resolve("ext4"), "16M", source);
    Images.fat32(folder.resolve("fat"), 36_000, source);
    Images.partition(folder.resolve("disk"), folder.resolve("fat"));
    Images.stripe(folder.resolve("ext4"), UNIT, folder.resolve("e0"), folder.resolve("e1"));
  }

  static Stream<String> devices() {
    return Stream.of(
        "sim:file=ext4",
        "sim:lba=4096,file=ext4",
        "file:ext4?path=pinned",
        "sim:file=fat",
        "sim:file=disk#2",
        "file:disk",
        "stripe:sim:file=e0,sim:file=e1;unit=64KiB");
  }

  private static String address(String device) {
    return device.replaceAll("file(=|:)(?=[a-z])", "file$1" + folder + "/");
  }

  private static Cli.Result run(String command, String device, String path, Object... more) {
    List<Object> words =
        new ArrayList<>(
            List.of(command, path, "--device", address(device), "--accelerator", "cpu"));
    words.addAll(Arrays.asList(more));
    return Cli.run(words.toArray());
  }

  @ParameterizedTest
  @MethodSource("devices")
  void loadBringsTheBytesOfThePlainFile(String device) throws IOException {
    for (String path : List.of("models/m.safetensors", "/models")) {
      JsonObject all =
          run("load", device, path, "--verify=" + manifest, "--json").succeeded().json();
      assertThat(all.getAsJsonArray("models")).hasSize(1);
      JsonObject loaded = all.getAsJsonArray("models").get(0).getAsJsonObject();
      assertThat(loaded.get("verified").getAsInt()).isEqualTo(10);
      assertThat(loaded.get("tensors").getAsInt()).isEqualTo(10);
      assertThat(loaded.get("bytes").getAsLong()).isEqualTo(8L * 256 * 520 * 2 + 77 * 4);
      String how = device.contains("sim:") ? "direct" : "pinned";
      if (device.contains("sim:") || device.contains("path=")) {
        assertThat(loaded.get("path").getAsString()).isEqualTo(how);
      }
    }
    assertThat(
            run("load", device, "models", "--rank", "1/2", "--order", "layers").succeeded().out())
        .contains("GB/s");
    // The same address in one word.
    String whole = address(device) + ":/models/m.safetensors";
    Cli.Result one = Cli.run("load", whole, "--accelerator", "cpu", "--verify=" + manifest);
    assertThat(one.succeeded().out()).contains("10 of 10 tensors");
  }

  @ParameterizedTest
  @MethodSource("devices")
  void inspectSaysTheSame(String device) {
    JsonObject plain =
        Cli.run("inspect", model, "--accelerator", "cpu", "--json").succeeded().json();
    JsonObject ours = run("inspect", device, "models/m.safetensors", "--json").succeeded().json();
    assertThat(ours.get("tensors")).isEqualTo(plain.get("tensors"));
    assertThat(ours.get("bytes")).isEqualTo(plain.get("bytes"));
    assertThat(ours.getAsJsonArray("tensors").toString()).contains("\"shape\":[256,520]");
    assertThat(run("inspect", device, "models", "--layers").succeeded().out()).contains("layer 7");
  }

  /** A bit of a tensor is turned over in the image: the tensor is named, and nothing is loaded. */
  @Test
  void aWrongBitIsFound() throws IOException {
    byte[] image = Files.readAllBytes(folder.resolve("ext4"));
    TensorInfo tensor;
    try (Accelerator cpu = CpuAccelerator.open();
        Weights plain = Weights.open(StorageAddress.parse("file:" + model), cpu)) {
      tensor = plain.tensors().get("model.layers.5.w");
    }
    byte[] file = Files.readAllBytes(model);
    int at =
        find(
            image,
            Arrays.copyOfRange(file, (int) tensor.offset() + 2000, (int) tensor.offset() + 2032));
    image[at] ^= 1;
    Files.write(folder.resolve("wrong"), image);
    run("load", "sim:file=wrong", "models", "--verify=" + manifest)
        .failed(ExitCode.FAILURE, "'model.layers.5.w'");
    run("load", "sim:file=wrong", "models").succeeded();
  }

  private static int find(byte[] in, byte[] what) {
    for (int i = 0; i + what.length <= in.length; i++) {
      if (Arrays.equals(in, i, i + what.length, what, 0, what.length)) {
        return i;
      }
    }
    throw new AssertionError("it is not there in one piece");
  }

  @Test
  void whatIsNotThereIsSaid() {
    run("load", "sim:file=ext4", "models/none").refused("/models/none");
    run("inspect", "sim:file=ext4", "none/m.safetensors").refused("/none");
    run("load", "sim:file=ext4#1", "models").refused("partition");
  }
}
