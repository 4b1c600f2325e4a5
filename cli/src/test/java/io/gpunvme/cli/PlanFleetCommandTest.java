package io.gpunvme.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PlanFleetCommandTest {
  @TempDir private Path folder;

  private static Cli.Result plan(Object... more) {
    Object[] all = new Object[more.length + 3];
    all[0] = "plan-fleet";
    all[1] = "--model";
    all[2] = "140GiB";
    System.arraycopy(more, 0, all, 3, more.length);
    return Cli.run(all);
  }

  /** If this fails, and the numbers are as they should be, copy the tables to the page. */
  @ParameterizedTest
  @ValueSource(ints = {1, 8, 1000})
  void thePageShowsTheseTables(int machines) throws IOException {
    String table =
        plan("--machines", machines)
            .succeeded()
            .out()
            .lines()
            .dropWhile(line -> !line.startsWith("FROM"))
            .limit(5)
            .collect(Collectors.joining("\n"));

    assertThat(Files.readString(Path.of("../docs/scale.md"))).contains("```\n" + table + "\n```\n");
  }

  @Test
  void theTextSaysWhatIsMeasuredAndWhatHappens() {
    assertThat(plan("--machines", 4, "--from", "pool").succeeded().out())
        .startsWith("140GiB, placement machine; 4 machines with 8 GPUs and 8 SSDs each;")
        .contains(
            "\npool: limited by network in\n",
            "  without what is lost a checkpoint is whole\n",
            "  lost in the middle: the others go on; spares read all of theirs from the pool;",
            "\nnic               50GB/s     assumed   a machine's network cards",
            "\ngpu-link          55.14GB/s  measured  ")
        .doesNotContain("\nown: ");
  }

  @Test
  void jsonHasEverythingAndStaysTheSame() {
    Cli.Result first = plan("--machines", 1000, "--json").succeeded();
    JsonObject json = first.json();

    assertThat(json.keySet())
        .containsExactly(
            "machines",
            "gpus",
            "ssds",
            "model_bytes",
            "checkpoint_bytes",
            "placement",
            "targets",
            "lost",
            "one_process",
            "ways",
            "parameters");
    JsonArray ways = json.getAsJsonArray("ways");
    assertThat(ways).hasSize(4);
    JsonObject pool = ways.get(3).getAsJsonObject();
    assertThat(pool.keySet())
        .containsExactly(
            "from", "load", "stored_bytes", "save", "restore", "checkpoint_survives", "loss");
    JsonObject load = pool.getAsJsonObject("load");
    assertThat(load.get("limit").getAsString()).isEqualTo("pool");
    assertThat(load.get("least_seconds").getAsDouble()).isEqualTo(375.809638);
    assertThat(ways.get(0).getAsJsonObject().get("save").isJsonNull()).isTrue();
    JsonObject nic = json.getAsJsonObject("parameters").getAsJsonObject("nic");
    assertThat(nic.get("kind").getAsString()).isEqualTo("assumed");
    assertThat(plan("--machines", 1000, "--json").succeeded().out()).isEqualTo(first.out());
  }

  @Test
  void optionsReachThePlan() {
    JsonObject json =
        plan(
                "--machines",
                12,
                "--gpus",
                4,
                "--ssds",
                2,
                "--placement",
                "gpu",
                "--targets",
                3,
                "--checkpoint",
                "1TiB",
                "--lost",
                7,
                "--one-process",
                "--json")
            .succeeded()
            .json();

    assertThat(
            List.of("machines", "gpus", "ssds", "targets", "lost").stream()
                .map(name -> json.get(name).getAsInt()))
        .containsExactly(12, 4, 2, 3, 7);
    assertThat(json.get("placement").getAsString()).isEqualTo("gpu");
    assertThat(json.get("checkpoint_bytes").getAsLong()).isEqualTo(1L << 40);
    assertThat(json.get("one_process").getAsBoolean()).isTrue();
    JsonObject lost = json.getAsJsonArray("ways").get(2).getAsJsonObject().getAsJsonObject("loss");
    assertThat(lost.get("seconds").isJsonNull()).isTrue();
  }

  @Test
  void parametersComeFromAFileAndThenFromTheCommandLine() throws IOException {
    Path file = Files.writeString(folder.resolve("m.json"), "{\"nic\": {\"value\": 25}}");
    JsonObject parameters =
        plan("--machine", file, "--set", "hop=1us", "--json")
            .succeeded()
            .json()
            .getAsJsonObject("parameters");
    assertThat(parameters.getAsJsonObject("nic").get("source").getAsString())
        .isEqualTo(file.toString());
    assertThat(parameters.getAsJsonObject("hop").get("value").getAsDouble()).isEqualTo(1);

    assertThat(plan("--machine", file, "--set", "nic=400GB/s").succeeded().out())
        .contains("\nnic               400GB/s    given     ");
    Files.writeString(file, "{}x");
    plan("--machine", file).refused("m.json is not a JSON object of parameters");
  }

  @Test
  void thePlotIsWrittenWholeOrNotAtAll() throws IOException {
    Path file = folder.resolve("fleet.svg");
    plan("--machines", 1000, "--plot", file, "--json").succeeded().json();

    assertThat(file).content().isEqualTo(Files.readString(Path.of("../docs/images/fleet.svg")));
    plan("--plot", folder.resolve("nowhere/a.svg")).failed(ExitCode.USAGE, "nowhere/a.svg");
    plan("--plot", folder).refused("is a folder");
  }
}
