package io.gpunvme.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.core.bench.Measurement;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@link ResultFile} and the page that {@link BenchReport} makes of it. */
class ResultFileTest {
  private static final GpuBenchMachine MACHINE =
      new GpuBenchMachine("NVIDIA H200", "570.1 (CUDA 12.8)", "a CPU", 16, "6.1", "25");

  @TempDir Path folder;

  private static Measurement measurement(String id, String unit, double... samples) {
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("queue_pairs", 4);
    conditions.put("doorbells_per_command", 1.0 / 3);
    conditions.put("responder", "kernel");
    return new Measurement(id, unit, samples, conditions, null, null);
  }

  @Test
  void hasTheFieldsOfTheDesign() throws IOException {
    ResultFile file = new ResultFile(folder, MACHINE, "abc1234");
    Measurement ceiling = measurement("ceiling.h2d", "GB/s", 50);
    file.add(measurement("stream.1m.vram", "GB/s", 20, 40, 30).limitedBy(ceiling));

    assertThat(folder.relativize(file.path()).toString())
        .matches("nvidia-h200-16-cores/\\d{4}-\\d\\d-\\d\\d-abc1234\\.json");
    JsonObject json = JsonParser.parseString(Files.readString(file.path())).getAsJsonObject();
    assertThat(json.keySet()).containsExactly("machine", "commit", "date", "results");
    assertThat(json.getAsJsonObject("machine").keySet())
        .containsExactly("gpu", "driver", "cpu", "cores", "kernel", "java");
    JsonObject result = json.getAsJsonArray("results").get(0).getAsJsonObject();
    assertThat(result.keySet())
        .containsExactly(
            "id",
            "unit",
            "median",
            "min",
            "max",
            "samples",
            "conditions",
            "limit",
            "peer",
            "verified");
    assertThat(result.get("median").getAsDouble()).isEqualTo(30);
    assertThat(result.get("min").getAsDouble()).isEqualTo(20);
    assertThat(result.get("max").getAsDouble()).isEqualTo(40);
    assertThat(result.get("samples").getAsInt()).isEqualTo(3);
    assertThat(result.getAsJsonObject("conditions").get("doorbells_per_command").getAsDouble())
        .isEqualTo(0.3333);
    assertThat(result.getAsJsonObject("limit").get("ratio").getAsDouble()).isEqualTo(0.6);
    assertThat(result.getAsJsonObject("peer").get("value").getAsDouble()).isEqualTo(25);
  }

  @Test
  void isWholeAfterEveryResult() throws IOException {
    ResultFile file = new ResultFile(folder, MACHINE, "abc1234");
    for (int i = 1; i <= 3; i++) {
      file.add(measurement("queue.qd1", "ns", i));
      JsonObject json = JsonParser.parseString(Files.readString(file.path())).getAsJsonObject();
      assertThat(json.getAsJsonArray("results")).hasSize(i);
    }
    assertThat(file.path().getParent()).isDirectoryNotContaining("glob:**.next");
  }

  @Test
  void becomesATableWithLimitsAndPeers() throws IOException {
    ResultFile file = new ResultFile(folder, MACHINE, "abc1234");
    file.add(measurement("queue.host.exclusive.qp4", "commands/s", 50e6, 51e6, 52e6));
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
