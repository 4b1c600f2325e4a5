package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.gpunvme.testing.Programs;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
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
 * {@code ls}, {@code stat}, {@code extents} and {@code cat} of a FAT32 volume made by mkfs.vfat and
 * mtools: in an image, and through the embedded controller; directly and in a partition.
 */
class FileCommandsTest {
  private static final int FIRST = 2048;
  private static final int SECTOR = 512;
  private static final byte[] CONTENT = new byte[5_000_001];

  @TempDir private static Path folder;
  private static Path volume;
  private static Path disk;

  @BeforeAll
  static void make() throws IOException {
    Programs.need("dosfstools", "mkfs.vfat");
    Programs.need("mtools", "mcopy", "mmd");
    new Random(3).nextBytes(CONTENT);
    volume = folder.resolve("fat.img");
    Path model = Files.write(folder.resolve("model"), CONTENT);
    Path empty = Files.createFile(folder.resolve("empty"));
    Programs.run("mkfs.vfat", "-F", 32, "-s", 1, "-n", "MODELS", "-C", volume, 36_000);
    Programs.run("mmd", "-i", volume, "::/models", "::/models/deep");
    Programs.run("mcopy", "-i", volume, model, "::/models/Ein Modell.safetensors");
    Programs.run("mcopy", "-i", volume, empty, "::/models/deep/empty.txt");
    disk = folder.resolve("disk.img");
    byte[] bytes = Files.readAllBytes(volume);
    try (RandomAccessFile file = new RandomAccessFile(disk.toFile(), "rw")) {
      ByteBuffer mbr = ByteBuffer.allocate(SECTOR).order(ByteOrder.LITTLE_ENDIAN);
      mbr.put(446 + 16 + 4, (byte) 0x0C);
      mbr.putInt(446 + 16 + 8, FIRST);
      mbr.putInt(446 + 16 + 12, bytes.length / SECTOR);
      mbr.putShort(510, (short) 0xAA55);
      file.write(mbr.array());
      file.seek((long) FIRST * SECTOR);
      file.write(bytes);
      file.setLength(40L << 20);
    }
  }

  /** Every way to the same volume. */
  static Stream<String> devices() {
    return Stream.of(
        volume.toString(),
        "file:" + volume,
        "file:" + volume + "?path=pinned",
        disk.toString(),
        disk + "#2",
        "sim:file=" + volume,
        "sim:lba=4096,file=" + volume,
        "sim:file=" + disk,
        "sim:file=" + disk + "#2");
  }

  private static Object[] words(String command, String address, Object... more) {
    List<Object> words = new ArrayList<>(List.of(command, address, "--accelerator", "cpu"));
    words.addAll(Arrays.asList(more));
    return words.toArray();
  }

  private static Cli.Result run(String command, String address, Object... more) {
    return Cli.run(words(command, address, more)).succeeded();
  }

  @ParameterizedTest
  @MethodSource("devices")
  void catBringsTheSameBytes(String device) {
    String address = device + ":/MODELS/ein modell.SAFETENSORS";
    assertThat(run("cat", address).bytes()).isEqualTo(CONTENT);
    assertThat(run("cat", address, "--offset", 4_999_990).bytes())
        .isEqualTo(Arrays.copyOfRange(CONTENT, 4_999_990, CONTENT.length));
    assertThat(run("cat", address, "--offset", 511, "--length", "1MiB").bytes())
        .isEqualTo(Arrays.copyOfRange(CONTENT, 511, 511 + (1 << 20)));
    assertThat(run("cat", device + ":/models/deep/empty.txt").bytes()).isEmpty();
  }

  @ParameterizedTest
  @MethodSource("devices")
  void extentsAreWhereTheBytesAre(String device) throws IOException {
    JsonObject json = run("extents", device + ":/models/Ein Modell.safetensors", "--json").json();
    boolean parted = device.contains("disk.img");
    byte[] bytes = Files.readAllBytes(parted ? disk : volume);
    int lba = json.get("lba_bytes").getAsInt();
    assertThat(lba).isEqualTo(device.contains("lba=4096") ? 4096 : 512);
    byte[] seen = new byte[CONTENT.length];
    for (JsonElement element : json.getAsJsonArray("extents")) {
      JsonObject e = element.getAsJsonObject();
      long at = e.get("device_offset").getAsLong();
      assertThat(e.get("lba").getAsLong() * lba + e.get("byte_in_lba").getAsLong()).isEqualTo(at);
      System.arraycopy(
          bytes, (int) at, seen, e.get("file_offset").getAsInt(), e.get("length").getAsInt());
    }
    assertThat(Arrays.equals(seen, CONTENT)).isTrue();
    assertThat(json.get("partition").isJsonNull()).isEqualTo(!parted);
    String how =
        device.startsWith("sim:") ? "CPU-initiated" : device.contains("?") ? "pinned" : "image";
    assertThat(json.get("read_by").getAsString()).contains(how);
  }

  private static List<String> paths(JsonObject json) {
    JsonArray entries = json.getAsJsonArray("entries");
    return entries.asList().stream()
        .map(e -> e.getAsJsonObject().get("path").getAsString())
        .toList();
  }

  @ParameterizedTest
  @MethodSource("devices")
  void lsListsFolders(String device) {
    assertThat(paths(run("ls", device, "--json").json())).containsExactly("/models");
    assertThat(paths(run("ls", device + ":/models/", "-R", "--json").json()))
        .containsExactly(
            "/models/Ein Modell.safetensors", "/models/deep", "/models/deep/empty.txt");
  }

  @Test
  void lsForPeople() {
    assertThat(run("ls", volume + ":/models").out()).isEqualTo("Ein Modell.safetensors\ndeep/\n");
    assertThat(run("ls", "-l", volume + ":/models").out())
        .containsPattern("(?m)^file +4.77MiB +20\\d\\d-\\S+Z +Ein Modell.safetensors$")
        .containsPattern("(?m)^folder +- +20\\d\\d-\\S+Z +deep/$");
    assertThat(run("ls", "-R", volume + ":/models").out())
        .isEqualTo("/models:\nEin Modell.safetensors\ndeep/\n\n/models/deep:\nempty.txt\n");
    assertThat(run("ls", volume + ":/models/deep/EMPTY.TXT", "-l").out()).contains("file  0B");
  }

  @Test
  void lsWithDetailsAsJson() {
    JsonObject json = run("ls", "-l", disk + ":/models", "--json").json();
    assertThat(json.get("file_system").getAsString()).isEqualTo("vfat");
    assertThat(json.get("label").getAsString()).isEqualTo("MODELS");
    assertThat(json.get("partition").getAsInt()).isEqualTo(2);
    assertThat(json.get("partition_offset").getAsInt()).isEqualTo(FIRST * SECTOR);
    JsonObject first = json.getAsJsonArray("entries").get(0).getAsJsonObject();
    assertThat(first.get("bytes").getAsInt()).isEqualTo(CONTENT.length);
    assertThat(first.get("kind").getAsString()).isEqualTo("file");
  }

  @Test
  void stat() {
    assertThat(run("stat", "sim:file=" + disk + ":/models/Ein Modell.safetensors").out())
        .startsWith("/models/Ein Modell.safetensors\n")
        .contains("5000001 bytes (4.77MiB)", "EINMOD~1.SAF", "vfat 'MODELS'", "#2 (FAT32")
        .containsPattern("(?m)^  extents +\\d+$")
        .contains("CPU-initiated");
    JsonObject json = run("stat", volume + "", "--json").json();
    assertThat(json.get("kind").getAsString()).isEqualTo("folder");
    assertThat(json.get("extents").isJsonNull()).isTrue();
    assertThat(json.getAsJsonObject("details").get("state").getAsString()).isEqualTo("clean");
    assertThat(json.getAsJsonArray("notes")).isEmpty();
  }

  @Test
  void extentsForPeople() {
    assertThat(run("extents", volume + ":/models/Ein Modell.safetensors").out())
        .contains("Ein Modell.safetensors, 4.77MiB in 1 extent", "image file")
        .containsPattern("FILE OFFSET +LENGTH +DEVICE OFFSET +LBA \\(512\\)")
        .containsPattern("(?m)^0 +5000001 +\\d+ +\\d+$");
  }

  /** A hole, a link, and a journal that was not replayed. */
  @Test
  void ext4() throws IOException {
    Programs.need("e2fsprogs", "mke2fs", "debugfs");
    Path source = Files.createDirectory(folder.resolve("source"));
    Path image = folder.resolve("ext4.img");
    try (RandomAccessFile file = new RandomAccessFile(source.resolve("a").toFile(), "rw")) {
      file.write(CONTENT, 0, 8192);
      file.seek(1 << 20);
      file.write(CONTENT, 0, 5000);
    }
    Files.createSymbolicLink(source.resolve("link"), Path.of("a"));
    Programs.run("mke2fs", "-q", "-t", "ext4", "-b", 4096, "-d", source, image, "16M");
    String device = "sim:lba=4096,file=" + image;
    byte[] expected = Files.readAllBytes(source.resolve("a"));

    assertThat(run("cat", device + ":/link").bytes()).isEqualTo(expected);
    assertThat(run("ls", "-l", device + ":/").out()).containsPattern("(?m)^link .* link -> a$");
    assertThat(run("stat", device + ":/link").out()).containsPattern("(?m)^  target +a$");
    assertThat(run("extents", device + ":/a").out())
        .containsPattern("(?m)^8192 +1040384 +zeros +-$")
        .contains("CPU-initiated");
    Programs.run("debugfs", "-w", "-R", "feature needs_recovery", image);
    Cli.run(words("ls", device + ":/")).failed(ExitCode.FAILURE, "journal");
    assertThat(run("cat", device + ":/a", "--journal", "ignore").bytes()).isEqualTo(expected);
  }

  /** Without a path it is a file of a mounted file system, and the kernel is asked. */
  @Test
  void extentsOfAMountedFile() {
    Cli.Result result = Cli.run("extents", volume, "--json");
    if (result.code() != 0) {
      assertThat(result.err()).contains("unsupported", "read it through the kernel");
      System.out.println("SKIP extents of a mounted file: " + result.err().strip());
      return;
    }
    JsonObject json = result.json();
    assertThat(json.get("read_by").getAsString()).startsWith("FIEMAP");
    assertThat(json.get("device").getAsString()).isNotBlank();
    JsonArray extents = json.getAsJsonArray("extents");
    JsonObject last = extents.get(extents.size() - 1).getAsJsonObject();
    assertThat(last.get("file_offset").getAsLong() + last.get("length").getAsLong())
        .isEqualTo(json.get("bytes").getAsLong())
        .isEqualTo(36_000L << 10);
    assertThat(extents.toString()).contains("\"zeros\":true", "\"device_offset\":null");
    assertThat(run("extents", volume.toString()).out()).contains("FIEMAP", "zeros");
  }

  private static String file() {
    return volume + ":/models/Ein Modell.safetensors";
  }

  @Test
  void failuresSayWhatAndWhere() {
    Cli.run(words("cat", volume + ":/models/none")).refused(volume + ", /models/none: not found");
    Cli.run(words("cat", volume + ":/models")).failed(ExitCode.FAILURE, "this is not a file");
    Cli.run(words("cat", file(), "--json")).refused("both go to standard output");
    Cli.run(words("extents", volume + ":/models")).failed(ExitCode.FAILURE, "not a file");
    Cli.run(words("ls", volume + "#1:/")).refused("the whole device is vfat");
    Cli.run(words("ls", disk + "#1:/")).refused("no partition #1; there are: #2 (FAT32");
    String file = file();
    Cli.run(words("cat", file, "--offset", "5000002")).refused("past the file's end, 5000001");
    Cli.run(words("cat", file, "--offset", "1", "--length", "5000001")).refused("past the file's");
    Cli.run(words("ls", file + "/x")).failed(ExitCode.FAILURE, "not a folder");
    Cli.run(words("ls", folder.resolve("model") + ":/")).refused("neither a known file system");
  }

  @Test
  void aFailureOfTheDeviceIsSaid() throws IOException {
    Path rules =
        Files.writeString(folder.resolve("rules"), "status=media/unrecovered-read on read");
    Cli.Result result =
        Cli.run(words("ls", "sim:file=" + volume + ",faults=@" + rules + ":/models"));
    assertThat(result.code()).isEqualTo(ExitCode.FAILURE);
    assertThat(result.err()).startsWith("gpunvme ls: ").hasLineCount(1);
  }
}
