package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import io.gpunvme.gpu.queue.CpuCuda;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Images of graphs, and programs on them, with the code that a GPU runs. */
@Timeout(180)
class GraphCommandsTest {
  private static CliLines gpu;

  @TempDir private Path folder;
  private Path image;

  @BeforeAll
  static void start() throws IOException {
    gpu = CliLines.withGpu(CpuCuda.library());
  }

  @AfterAll
  static void end() {
    if (gpu != null) {
      gpu.close();
    }
  }

  @BeforeEach
  void generate() {
    image = folder.resolve("k8.graph");
    JsonObject json =
        Cli.run("graph", "generate", "kron", "--scale", 8, "--weights", "--json", "--output", image)
            .succeeded()
            .json();
    assertThat(json.get("vertices").getAsLong()).isEqualTo(256);
    assertThat(json.get("symmetric").getAsBoolean()).isTrue();
    assertThat(json.get("weighted").getAsBoolean()).isTrue();
    assertThat(json.get("bytes").getAsLong()).isEqualTo(image.toFile().length());
  }

  private static Cli.Result run(String words, Object... more) throws IOException {
    List<String> all = new ArrayList<>(List.of(words.strip().split(" +")));
    Stream.of(more).map(Object::toString).forEach(all::add);
    return gpu.run(all);
  }

  private static List<Long> words(Path file) throws IOException {
    ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(file)).order(ByteOrder.LITTLE_ENDIAN);
    List<Long> all = new ArrayList<>();
    while (bytes.hasRemaining()) {
      all.add(Integer.toUnsignedLong(bytes.getInt()));
    }
    return all;
  }

  @ParameterizedTest
  @CsvSource({"bfs,host", "cc,vram-data", "sssp,vram", "pagerank,host"})
  void aProgramIsTheSameByBoth(String algorithm, String placement) throws IOException {
    String line =
        "bench graph --cache 8KiB --page 512B --threads 512 --queues 2 --depth 32 --verify --json"
            + " --placement %s --algorithm %s".formatted(placement, algorithm);
    JsonObject json = run(line, image).succeeded().json();
    assertThat(json.get("verified").getAsBoolean()).isTrue();
    assertThat(json.get("initiator").getAsString()).isEqualTo("GPU");
    assertThat(json.get("placement").getAsString()).isEqualTo(placement);
    assertThat(json.get("device").getAsString()).startsWith("sim:file=").contains("readonly=on");
    assertThat(json.get("cache_bytes").getAsLong()).isEqualTo(8192);
    assertThat(json.get("page_bytes").getAsLong()).isEqualTo(512);
    assertThat(json.get("read_bytes").getAsLong())
        .isEqualTo(512 * json.get("reads").getAsLong())
        .isPositive();
    assertThat(json.get("hit_rate").getAsDouble()).isBetween(0.5, 1.0);
    assertThat(json.get("edges_per_second").getAsDouble()).isPositive();
    JsonObject cpu =
        run("bench graph --initiator cpu --json --algorithm " + algorithm, image)
            .succeeded()
            .json();
    assertThat(cpu.get("initiator").getAsString()).isEqualTo("CPU");
    assertThat(cpu.get("accelerator").getAsString()).contains("1 thread");
    for (String amount : List.of("reached", "components", "rank_sum_millionths", "source")) {
      assertThat(json.get(amount)).isEqualTo(cpu.get(amount));
    }
  }

  @ParameterizedTest
  @CsvSource({"bfs,vram", "cc,host", "sssp,host", "pagerank,vram"})
  void theSameInMemoryIsForComparison(String algorithm, String place) throws IOException {
    String line = "bench graph --threads 512 --verify --json --edges %s --algorithm %s";
    JsonObject json = run(line.formatted(place, algorithm), image).succeeded().json();
    assertThat(json.get("verified").getAsBoolean()).isTrue();
    assertThat(json.get("initiator").getAsString()).isEqualTo("GPU");
    assertThat(json.get("edges_in").getAsString()).isEqualTo(place);
    assertThat(json.has("reads")).isFalse();
  }

  @Test
  void resultsAreForOthersToRead() throws IOException {
    Path edges = Files.writeString(folder.resolve("edges"), "0 1 5\n1 2 7\n4 3 1\n");
    Path small = folder.resolve("small.graph");
    assertThat(Cli.run("graph", "convert", edges, "--weights", "--output", small).succeeded().out())
        .contains("5 vertices, 3 directed edges, not symmetric, with weights");
    Path results = folder.resolve("results");
    run("bench graph --threads 256 --algorithm bfs --results", results, small).succeeded();
    assertThat(words(results)).containsExactly(0L, 1L, 2L, 0xFFFFFFFFL, 0xFFFFFFFFL);
    run("bench graph --threads 256 --algorithm sssp --source 1 --results", results, small)
        .succeeded();
    assertThat(words(results)).containsExactly(0xFFFFFFFFL, 0L, 7L, 0xFFFFFFFFL, 0xFFFFFFFFL);
    run("bench graph --initiator cpu --algorithm cc --results", results, small).succeeded();
    assertThat(words(results)).containsExactly(0L, 0L, 0L, 3L, 3L);
  }

  @Test
  void aPlaceForResultsIsAskedForBeforeTheyAreMade() throws IOException {
    Path nowhere = folder.resolve("none").resolve("results");
    Cli.Result result =
        run("bench graph --algorithm bfs --source 4294967290 --results", nowhere, image);
    assertThat(result.code()).isNotEqualTo(ExitCode.OK);
    assertThat(result.err()).contains("none");
  }

  @Test
  void textSaysHowItWasRead() throws IOException {
    assertThat(run("bench graph --threads 256 --algorithm cc", image).succeeded().out())
        .contains("read through an embedded SSD: sim:file=", "components", "the SSD", "hit rate");
    assertThat(run("bench graph --initiator cpu --algorithm cc", image).succeeded().out())
        .contains("CPU, 1 thread", "host memory")
        .doesNotContain("embedded");
    assertThat(Cli.run("graph", "info", image).succeeded().out())
        .contains("256 vertices", "symmetric, with weights", "offsets", "from byte 65536 on");
    JsonObject json = Cli.run("graph", "info", "sim:file=" + image, "--json").succeeded().json();
    assertThat(json.get("edges_at").getAsLong()).isEqualTo(131072);
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "bench graph IMAGE                                          | --algorithm",
        "bench graph IMAGE --algorithm dfs                          | 'dfs' is not one of bfs, cc",
        "bench graph IMAGE --algorithm cc --source 1                | --source is for bfs and sssp",
        "bench graph IMAGE --algorithm bfs --source 256             | vertices 0 to 255",
        "bench graph IMAGE --algorithm bfs --page 3000B             | a power of two from 512",
        "bench graph IMAGE --algorithm bfs --cache 1KiB             | a cache of 1024 bytes",
        "bench graph IMAGE --algorithm bfs --edges vram --cache 1MiB | without --cache",
        "bench graph IMAGE --algorithm bfs --edges host --initiator cpu | --edges host is for a"
            + " GPU",
        "bench graph IMAGE --algorithm bfs --edges tape             | 'tape' is not one of ssd,"
            + " vram",
        "bench graph IMAGE --algorithm bfs --edges vram --page 3000B | a power of two from 512",
        "bench graph /nonexistent --algorithm bfs                   | no such file",
        "graph generate kron --scale 40 --output FOLDER/x           | outside 1..31",
        "graph generate kron --output FOLDER/x                      | --scale",
        "graph generate ring --scale 4 --output FOLDER/x            | 'ring' is not one of kron",
        "graph generate kron --scale 4 --output FOLDER              | is a folder",
        "graph generate kron --scale 4 --output /dev/null           | not a regular file",
        "graph convert /nonexistent --output FOLDER/x               | no such file",
        "graph info /nonexistent                                    | no such file",
        "graph                                                      | WHAT is missing",
      })
  void whatMakesNoSenseIsRefused(String line, String why) throws IOException {
    run(line.replace("IMAGE", image.toString()).replace("FOLDER", folder.toString())).refused(why);
  }

  @Test
  void whatIsNoImageIsSaid() throws IOException {
    Path other = Files.write(folder.resolve("other"), new byte[65536]);
    run("bench graph --algorithm cc", other).failed(ExitCode.FAILURE, "is no image of a graph");
    Cli.run("graph", "info", other).failed(ExitCode.FAILURE, "gpunvme graph generate");
    Path edges = Files.writeString(folder.resolve("edges"), "0 1\nx\n");
    Path kept = folder.resolve("kept");
    Cli.run("graph", "convert", edges, "--output", kept).failed(ExitCode.FAILURE, "line 2");
    try (Stream<Path> all = Files.list(folder)) {
      assertThat(all.map(Path::getFileName).map(Path::toString))
          .containsExactlyInAnyOrder("k8.graph", "other", "edges");
    }
  }
}
