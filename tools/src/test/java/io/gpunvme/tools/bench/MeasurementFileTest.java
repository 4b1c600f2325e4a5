package io.gpunvme.tools.bench;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** {@link MeasurementFile}. */
class MeasurementFileTest {
  private static final BenchMachine MACHINE =
      new BenchMachine("NVIDIA H200", "570.1 (CUDA 12.8)", "a CPU", 16, "6.1", "25");

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
    MeasurementFile file = MeasurementFile.replacing(folder, MACHINE, "abc1234");
    Measurement ceiling = measurement("ceiling.h2d", "GB/s", 50);
    file.add(
        measurement("stream.1m.vram", "GB/s", 20, 40, 30)
            .limitedBy(ceiling)
            .besides("another", 25));

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
    assertThat(result.getAsJsonObject("peer").get("ratio").getAsDouble()).isEqualTo(1.2);
  }

  @Test
  void isWholeAfterEveryResult() throws IOException {
    MeasurementFile file = MeasurementFile.replacing(folder, MACHINE, "abc1234");
    for (int i = 1; i <= 3; i++) {
      file.add(measurement("queue.qd1", "ns", i));
      JsonObject json = JsonParser.parseString(Files.readString(file.path())).getAsJsonObject();
      assertThat(json.getAsJsonArray("results")).hasSize(i);
    }
    assertThat(file.path().getParent()).isDirectoryNotContaining("glob:**.next");
  }

  @Test
  void twoOfADayAreTwo() throws IOException {
    MeasurementFile first = MeasurementFile.beside(folder, MACHINE, "abc1234");
    first.add(measurement("queue.qd1", "ns", 1));
    MeasurementFile second = MeasurementFile.beside(folder, MACHINE, "abc1234");
    second.add(measurement("queue.qd1", "ns", 2));

    assertThat(second.path().getFileName().toString())
        .isEqualTo(first.path().getFileName().toString().replace(".json", "-2.json"));
    assertThat(first.path().getParent()).isDirectoryContaining("glob:**1234.json");
    assertThat(MeasurementFile.replacing(folder, MACHINE, "abc1234").path())
        .isEqualTo(first.path());
  }

  @Test
  void aMachineWithoutAGpuIsNamedAfterItsProcessors() throws IOException {
    BenchMachine machine = BenchMachine.withoutGpu();
    assertThat(machine.id()).matches("cpu-\\d+-cores");
    assertThat(machine.gpu()).isEqualTo("none");
    assertThat(machine.cpu()).isNotBlank();
  }
}
