package io.gpunvme.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.gpunvme.tools.bench.BenchMachine;
import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.bench.MeasurementFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The pages that {@link BenchPages} makes of result files. */
class BenchPagesTest {
  private static final BenchMachine MACHINE =
      new BenchMachine("NVIDIA H200", "570.1 (CUDA 12.8)", "a CPU", 16, "6.1", "25");

  @TempDir Path folder;

  private static Measurement measurement(String id, String unit, double... samples) {
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("queue_pairs", 4);
    conditions.put("doorbells_per_command", 1.0 / 3);
    conditions.put("responder", "kernel");
    conditions.put("latency_ns", Map.of("p50", 1200));
    return new Measurement(id, unit, samples, conditions, null, null);
  }

  @Test
  void becomesATableWithLimitsAndPeers() throws IOException {
    MeasurementFile file = MeasurementFile.replacing(folder, MACHINE, "abc1234");
    file.add(
        GpuBenchPeers.beside(
            measurement("queue.host.exclusive.qp4", "commands/s", 50e6, 51e6, 52e6)));
    file.add(
        measurement("queue.qd1", "ns", 3000)
            .limitedBy(measurement("queue.qd1.round-trip", "ns", 2500)));

    String text = BenchTables.page(BenchResults.read(folder));

    assertThat(text)
        .contains("gpu NVIDIA H200")
        .contains("| peer |")
        .contains("a warp per queue in host memory")
        .contains("latency ns (p50 1200)")
        .contains("**51.00 M** commands/s | 50.00 M … 52.00 M")
        .contains("61.50 M (xNVMe")
        .contains("120 % of queue.qd1.round-trip");
    long columns =
        text.lines().filter(l -> l.startsWith("|---")).reduce((a, b) -> b).orElseThrow().length();
    assertThat(columns).isEqualTo(8 * 4 + 1);
    assertThat(text.lines().filter(l -> l.startsWith("| `")))
        .hasSize(2)
        .allMatch(l -> l.chars().filter(c -> c == '|').count() == 9);
  }

  @Test
  void thePagesInDocsAreWhatTheResultFilesGive() throws IOException {
    Path root = Path.of("..");
    for (var page :
        BenchPages.pages(root.resolve("bench/results"), root.resolve("docs")).entrySet()) {
      assertThat(Files.readString(page.getKey()))
          .as("%s is made by scripts/bench pages, from bench/results", page.getKey())
          .isEqualTo(page.getValue());
    }
  }

  @Test
  void aFigureStandsBesideItsLimitAndItsPeer() throws IOException {
    MeasurementFile file = MeasurementFile.replacing(folder.resolve("a-gpu"), MACHINE, "abc1234");
    Measurement limit = measurement("limit.disk", "commands/s", 200e3);
    file.add(limit);
    file.add(measurement("read", "commands/s", 150e3).limitedBy(limit));
    file.add(measurement("other", "commands/s", 1.234e6));
    BenchResults results = BenchResults.read(folder);
    String machine = results.runs().getFirst().machine();
    String source =
        "text\n<!-- figures %s\nOne | read | the disk | other=mmap\nTwo | read | other=it | -\n-->\n"
            .formatted(machine);

    String filled = BenchFigures.fill(source + "\n| old |\n\nmore\n", results);

    assertThat(filled)
        .startsWith(source + "\n| | gpunvme | limit | peer | result |\n")
        .contains("| One | **150 k/s** | 200 k/s, the disk (75 %) | 1.23 M/s, mmap | `read`, ")
        .contains("| Two | **150 k/s** | 1.23 M/s, it (12 %) |  | `read`, ")
        .endsWith(" abc1234 |\n\nmore\n")
        .doesNotContain("old");
    assertThat(BenchFigures.fill(filled, results)).isEqualTo(filled);
    assertThatThrownBy(() -> BenchFigures.fill(source.replace("other=mmap", "gone=x"), results))
        .hasMessage("no gone beside read");
    assertThatThrownBy(() -> results.newest(machine, "gone"))
        .hasMessageContaining("no result gone");
  }

  @Test
  void theNewestResultCountsAndOfOneDayTheOneWithMostSamples() throws IOException {
    write("2026-01-02-aaa", 3, 1);
    write("2026-01-02-bbb", 9, 2);
    write("2026-01-01-ccc", 20, 3);

    assertThat(BenchResults.read(folder).newest("m", "x").median()).isEqualTo(2);
  }

  private void write(String name, int samples, int median) throws IOException {
    Files.createDirectories(folder.resolve("m"));
    Files.writeString(
        folder.resolve("m").resolve(name + ".json"),
        """
        {"date": "%s", "commit": "c", "results": [{"id": "x", "samples": %d, "median": %d}]}
        """
            .formatted(name.substring(0, 10), samples, median));
  }
}
