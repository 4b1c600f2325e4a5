package io.gpunvme.bench;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.core.bench.BenchMachine;
import io.gpunvme.core.bench.Measurement;
import io.gpunvme.core.bench.MeasurementFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The page that {@link BenchReport} makes of result files. */
class BenchReportTest {
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
    Path page = folder.resolve("page.md");

    BenchReport.main(new String[] {folder.toString(), page.toString()});

    String text = Files.readString(page);
    assertThat(text)
        .contains("gpu NVIDIA H200")
        .contains("| best published |")
        .contains("a warp per queue in host memory")
        .contains("latency ns (p50 1200)")
        .contains("**51.00 M** commands/s | 50.00 M … 52.00 M")
        .contains("61.50 M (xNVMe")
        .contains("120 % of queue.qd1.round-trip");
    long columns =
        text.lines().filter(l -> l.startsWith("|---")).findFirst().orElseThrow().length();
    assertThat(columns).isEqualTo(8 * 4 + 1);
    assertThat(text.lines().filter(l -> l.startsWith("| `")))
        .hasSize(2)
        .allMatch(l -> l.chars().filter(c -> c == '|').count() == 9);
  }
}
