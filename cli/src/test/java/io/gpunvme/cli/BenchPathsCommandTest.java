package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@code bench paths}, small, on the CPU stand-in. */
class BenchPathsCommandTest {
  private static final List<String> CASES =
      List.of("seq.cold", "seq.warm", "rand4k.cold", "rand4k.warm");

  @TempDir private Path folder;

  @AfterEach
  void theFileIsGone() throws IOException {
    try (Stream<Path> left = Files.list(folder)) {
      assertThat(left.filter(p -> p.getFileName().toString().startsWith("gpunvme"))).isEmpty();
    }
  }

  private Object[] small(Object... more) {
    List<Object> all = new ArrayList<>(List.of("bench", "paths", folder));
    all.addAll(List.of("--size", "16MiB", "--reads", 512, "--repetitions", 1, "--workers", 1));
    all.addAll(List.of("--accelerator", "cpu", "--blocks", "4MiB"));
    all.addAll(Arrays.asList(more));
    return all.toArray();
  }

  @Test
  void everyPathThatIsPossibleAndAReasonForTheOther() {
    JsonObject json = Cli.run(small("--json")).succeeded().json();

    assertThat(json.get("benchmark").getAsString()).isEqualTo("paths");
    assertThat(json.get("file_bytes").getAsLong()).isEqualTo(16 << 20);
    assertThat(json.get("accelerator").getAsString()).startsWith("CPU stand-in");
    assertThat(json.get("kept").isJsonNull()).isTrue();
    Map<String, JsonObject> results = new TreeMap<>();
    for (JsonElement element : json.getAsJsonArray("results")) {
      JsonObject result = element.getAsJsonObject();
      results.put(result.get("id").getAsString(), result);
      assertThat(result.get("verified").getAsBoolean()).isTrue();
      assertThat(result.get("median").getAsDouble()).isPositive();
    }
    for (String path : List.of("direct", "pinned", "mmap", "auto")) {
      for (String rest : CASES) {
        JsonObject result = results.get("paths." + path + "." + rest);
        assertThat(result).as(path + "." + rest).isNotNull();
        assertThat(result.getAsJsonObject("peer").get("ratio").getAsDouble()).isPositive();
        assertThat(result.getAsJsonObject("conditions").get("threads").getAsInt()).isEqualTo(1);
      }
    }
    assertThat(results).containsKeys("paths.mmap.seq.warm.4m", "limit.cache.seq");
    assertThat(json.getAsJsonArray("not_measured"))
        .map(e -> e.getAsJsonObject().get("id").getAsString())
        .contains("paths.cufile.seq.cold");
    assertThat(json.getAsJsonArray("not_measured"))
        .map(e -> e.getAsJsonObject().get("reason").getAsString())
        .anyMatch(why -> why.contains("is not a GPU"));
  }

  @Test
  void aTableAndAFileForTheReport() throws IOException {
    Path kept = folder.resolve("results");
    Cli.Result result = Cli.run(small("--paths", "pinned,mmap", "--out", kept)).succeeded();

    assertThat(result.out())
        .startsWith("16MiB in " + folder + ", to CPU stand-in")
        .containsPattern("paths.pinned.seq.warm +\\d+\\.\\d\\d +\\d+\\.\\d\\d +\\d+\\.\\d\\d +GB/s")
        .contains("mapped file", "100 %")
        .containsPattern("kept " + kept + "/cpu-\\d+-cores/");
    Path page = folder.resolve("page.html");
    JsonObject report =
        Cli.run("bench", "report", kept, "--out", page, "--json").succeeded().json();
    assertThat(report.get("files").getAsInt()).isEqualTo(1);
    assertThat(Files.readString(page)).contains("Throughput by path", "Throughput by block size");
  }

  @Test
  void aLineOfGdsioForEachResult() {
    Cli.Result result = Cli.run(small("--paths", "mmap", "--gdsio")).succeeded();

    List<String> lines = result.out().lines().toList();
    assertThat(lines)
        .hasSize(6)
        .allMatch(
            line ->
                line.matches(
                    "IoType: (READ|RANDREAD) XferType: CPUONLY Threads: 1"
                        + " DataSetSize: \\d+/16384\\(KiB\\) IOSize: (4|1024|4096)\\(KiB\\)"
                        + " Throughput: \\d+\\.\\d+ GiB/sec, Avg_Latency: \\d+\\.\\d+ usecs"
                        + " ops: \\d+ total_time \\d+\\.\\d+ secs"));
    assertThat(lines.getFirst()).contains("IoType: READ", "IOSize: 1024(KiB)", "ops: 16 ");
  }

  @Test
  void aPathThatWasAskedForAndIsNotPossibleIsAFailure() {
    Cli.Result result = Cli.run(small("--paths", "cufile", "--json"));

    result.failed(ExitCode.FAILURE, "paths.cufile.seq.cold");
    assertThat(result.err()).contains("is not a GPU");
    assertThat(result.json().getAsJsonArray("not_measured")).isNotEmpty();
  }

  @Test
  void whatIsNotPossibleInOneStateOnlyIsNoFailure() throws IOException {
    Path memory = Path.of("/dev/shm");
    Assumptions.assumeTrue(
        Files.isWritable(memory) && Files.getFileStore(memory).type().equals("tmpfs"),
        "/dev/shm is not a tmpfs");
    Object[] args = small("--paths", "mmap");
    args[2] = memory;
    assertThat(Cli.run(args).succeeded().out())
        .contains("paths.mmap.seq.warm", "100 % of it stays in the page cache (tmpfs)")
        .contains("not measured: limit.disk.seq and 2 more: tmpfs has no O_DIRECT")
        .doesNotContain("paths.mmap.rand4k.cold ");
  }

  @Test
  void aTerminalSeesHowFarItIs() {
    Cli.Result result =
        Cli.onTerminal(small("--paths", "mmap")); // succeeded() wants no error stream

    assertThat(result.code()).isEqualTo(ExitCode.OK);
    assertThat(result.err()).contains("\r").contains("MiB");
    assertThat(result.out()).doesNotContain("\r");
  }

  @Test
  void aFolderWithoutRoomIsRefused() {
    long mebibytes = Math.ceilDiv(folder.toFile().getTotalSpace() >> 20, 16L) * 16 + 16;
    Cli.run("bench", "paths", folder, "--size", mebibytes + "MiB", "--accelerator", "cpu")
        .failed(ExitCode.FAILURE, "MiB are free");
  }

  @Test
  void wrongUsage() {
    Cli.run("bench", "paths", folder.resolve("missing")).refused("no such file or folder");
    Cli.run(small("--paths", "tape")).refused("no path 'tape'");
    Cli.run(small("--paths", "mmap,mmap")).refused("twice");
    Cli.run("bench", "paths", folder, "--size", "1MiB").refused("16 MiB");
    Cli.run("bench", "paths", folder, "--blocks", "3MiB").refused("a power of two");
    Cli.run("bench", "paths", folder, "--threads", "300").refused("1 to 256");
    Cli.run("bench", "paths", folder, "--reads", "1").refused("64 or more");
    Cli.run("bench", "paths", folder, "--accelerator", "tpu")
        .refused("no accelerator 'tpu': must be auto,");
    Cli.run("bench", "paths", folder, "--gdsio", "--json").refused("standard output");
  }

  @Test
  void helpHasExamples() {
    assertThat(Cli.run("bench", "paths", "--help").succeeded().out())
        .startsWith("Usage: gpunvme bench paths")
        .contains("Examples:\n  gpunvme bench paths", "--gdsio", "--out=DIR")
        .satisfies(help -> assertThat(help.lines()).allMatch(line -> line.length() <= 100));
  }
}
