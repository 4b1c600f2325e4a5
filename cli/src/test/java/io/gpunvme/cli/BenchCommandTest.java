package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.gpunvme.cuda.Cuda;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;

/** {@code bench}. */
class BenchCommandTest {
  @Test
  void theCpuReadsAtRandom() {
    JsonObject json =
        Cli.run("bench", "random", "--initiator", "cpu", "--queues", 1, "--depth", 8, "--json")
            .succeeded()
            .json();

    assertThat(json.get("benchmark").getAsString()).isEqualTo("random");
    assertThat(json.get("initiator").getAsString()).isEqualTo("CPU");
    List<String> ids = new ArrayList<>();
    for (JsonElement element : json.getAsJsonArray("results")) {
      JsonObject result = element.getAsJsonObject();
      ids.add(result.get("id").getAsString());
      assertThat(result.get("verified").getAsBoolean()).isTrue();
      assertThat(result.get("unit").getAsString()).isEqualTo("commands/s");
      assertThat(result.get("samples").getAsInt()).isGreaterThanOrEqualTo(3);
      assertThat(result.get("min").getAsDouble())
          .isPositive()
          .isLessThanOrEqualTo(result.get("median").getAsDouble());
      assertThat(result.get("median").getAsDouble())
          .isLessThanOrEqualTo(result.get("max").getAsDouble());
      JsonObject conditions = result.getAsJsonObject("conditions");
      assertThat(conditions.get("queue_pairs").getAsInt()).isEqualTo(1);
      assertThat(conditions.get("depth").getAsInt()).isEqualTo(8);
    }
    assertThat(ids).containsExactly("random.4k.cpu", "random.512.cpu");
  }

  @Test
  void aStreamEndsWithATable() {
    Cli.Result result = Cli.run("bench", "stream", "--initiator", "cpu").succeeded();

    assertThat(result.out())
        .startsWith("initiator CPU")
        .containsPattern("stream.1m.cpu +\\d+\\.\\d\\d +\\d+\\.\\d\\d +\\d+\\.\\d\\d +GB/s")
        .containsPattern("command bytes +1048576")
        .containsPattern("queue pairs +\\d");
  }

  @Test
  void withoutAGpuItSaysWhatIsMissing() {
    Assumptions.assumeFalse(Cuda.isAvailable(), "there is a GPU");

    Cli.run("bench", "queue").failed(ExitCode.FAILURE, "CUDA");
    Cli.run("bench", "random", "--initiator", "gpu").failed(ExitCode.FAILURE, "CUDA");
    Cli.run("bench", "stream", "--placement", "vram").failed(ExitCode.FAILURE, "CUDA");
  }
}
