package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code explain}, on the CPU stand-in. */
class ExplainCommandTest {
  private static final Path TMPFS = Path.of("/dev/shm");

  @TempDir private Path folder;

  private Path file(Path where) throws IOException {
    Path file = Files.createTempFile(where, "explain", ".bin");
    Files.write(file, new byte[1 << 20]);
    return file;
  }

  private static JsonObject explain(Object address) {
    return Cli.run("explain", address, "--accelerator", "cpu", "--json").succeeded().json();
  }

  private static JsonObject path(JsonObject json, String name) {
    for (JsonElement element : json.getAsJsonArray("paths")) {
      if (element.getAsJsonObject().get("path").getAsString().equals(name)) {
        return element.getAsJsonObject();
      }
    }
    throw new AssertionError("no path " + name + " in " + json);
  }

  private static void isNot(JsonObject json, String name, String reason) {
    JsonObject path = path(json, name);
    assertThat(path.get("possible").getAsBoolean()).as(name).isFalse();
    assertThat(path.get("automatic").getAsBoolean()).as(name).isFalse();
    assertThat(path.get("reason").getAsString()).contains(reason);
  }

  @Test
  void aFile() throws IOException {
    Path file = file(folder);
    JsonObject json = explain(file);

    assertThat(json.get("address").getAsString()).isEqualTo("file:" + file);
    assertThat(json.get("bytes").getAsLong()).isEqualTo(1 << 20);
    assertThat(json.get("asked").getAsString()).isEqualTo("auto");
    assertThat(json.get("refusal").isJsonNull()).isTrue();
    isNot(json, "direct", "the kernel drives the SSD");
    assertThat(path(json, "direct").get("fix").getAsString()).contains("gpunvme bind");
    isNot(json, "cufile", "is not a GPU");
    for (String name : new String[] {"pinned", "mmap"}) {
      assertThat(path(json, name).get("possible").getAsBoolean()).isTrue();
      assertThat(path(json, name).get("fix").isJsonNull()).isTrue();
      assertThat(json.getAsJsonObject("modes").get(name).getAsString()).isNotBlank();
    }
    assertThat(json.getAsJsonObject("numa").entrySet()).isNotEmpty();
    assertThat(json.getAsJsonObject("under_cufile").get("kind").getAsString()).isEqualTo("file");
    assertThat(json.getAsJsonObject("chosen").keySet())
        .containsExactly("long_cold", "long_warm", "blocks_cold", "blocks_warm");
    assertThat(json.getAsJsonObject("chosen").get("blocks_cold").getAsString()).isEqualTo("pinned");
  }

  @Test
  void aFileOnTmpfs() throws IOException {
    Assumptions.assumeTrue(
        Files.isWritable(TMPFS) && Files.getFileStore(TMPFS).type().equals("tmpfs"),
        "/dev/shm is not a tmpfs");
    Path file = file(TMPFS);
    try {
      JsonObject json = explain(file);
      assertThat(path(json, "pinned").get("reason").getAsString())
          .isEqualTo("page cache only: tmpfs has no O_DIRECT: its pages are the page cache");

      Cli.Result refused =
          Cli.run("explain", "file:" + file + "?path=pinned&direct=true", "--accelerator", "cpu");
      refused.failed(ExitCode.FAILURE, "tmpfs has no O_DIRECT");
    } finally {
      Files.delete(file);
    }
  }

  @Test
  void forPeople() throws IOException {
    Path file = file(folder);
    assertThat(Cli.run("explain", file, "--accelerator", "cpu").succeeded().out())
        .startsWith("file:" + file + ", 1MiB, to CPU stand-in")
        .containsPattern("(?m)^direct +no +the kernel drives")
        .contains("fix: give the SSD to gpunvme")
        .containsPattern("(?m)^mmap +yes +a regular file")
        .containsPattern("(?m)^  long reads, cold +(pinned|mmap)$")
        .containsPattern("(?m)^placed: .*, (no )?NUMA node")
        .contains("mmap: mapped file", "(the CPU stand-in was requested)")
        .endsWith("under gpunvme cufile: an ordinary file, through the kernel and pinned memory\n");
  }

  @Test
  void aPathByNameIsThatOne() throws IOException {
    JsonObject json = explain("file:" + file(folder) + "?path=mmap");

    assertThat(json.get("asked").getAsString()).isEqualTo("mmap");
    assertThat(json.get("reason").getAsString()).contains("asks for");
    assertThat(json.getAsJsonObject("chosen").get("long_cold").getAsString()).isEqualTo("mmap");
    assertThat(json.getAsJsonObject("modes").keySet()).containsExactly("mmap");
  }

  @Test
  void aPathByNameThatIsNotPossible() throws IOException {
    Cli.Result result =
        Cli.run(
            "explain", "file:" + file(folder) + "?path=cufile", "--accelerator", "cpu", "--json");

    result.failed(ExitCode.FAILURE, "is not a GPU");
    assertThat(result.json().get("asked").getAsString()).isEqualTo("cufile");
    assertThat(result.json().get("refusal").getAsString()).contains("cufile: ");
    isNot(result.json(), "cufile", "is not a GPU");
  }

  @Test
  void aSetHasItsMembers() {
    JsonObject json = explain("stripe:sim:size=1MiB,sim:size=1MiB");

    assertThat(json.getAsJsonArray("members")).hasSize(2);
    assertThat(json.getAsJsonArray("members").get(0).getAsJsonObject().get("name").getAsString())
        .isEqualTo("sim:size=1MiB");
    assertThat(json.get("slowest").isJsonNull()).isTrue();
    assertThat(explain("sim:size=1MiB").getAsJsonArray("members")).isEmpty();
  }

  @Test
  void aDevice() {
    JsonObject json = explain("sim:size=16MiB");

    assertThat(json.get("bytes").getAsLong()).isEqualTo(16 << 20);
    assertThat(path(json, "direct").get("possible").getAsBoolean()).isTrue();
    isNot(json, "pinned", "not a file");
    assertThat(json.get("under_cufile").isJsonNull()).isTrue();
    assertThat(json.getAsJsonObject("modes").get("direct").getAsString()).contains("CPU-initiated");
  }

  @Test
  void wrongUsage() throws IOException {
    Cli.run("explain").refused("ADDRESS");
    Cli.run("explain", folder.resolve("missing")).refused("no such file");
    Cli.run("explain", file(folder) + "?path=tape").refused("no path 'tape'");
    Cli.run("explain", file(folder) + "?speed=9").refused("no option 'speed'");
    Cli.run("explain", folder, "--accelerator", "cpu").failed(ExitCode.FAILURE, "directory");
  }
}
