package io.gpunvme.tools.fleet;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.gpunvme.tools.fleet.FluidSimulation.Link;
import io.gpunvme.tools.fleet.FluidSimulation.Use;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * The simulation beside what one and two H200 of one host did, from the result files. No parameter
 * is taken from a run with two GPUs.
 */
final class MeasuredFleetTest {
  private static final Path RESULTS = Path.of("../bench/results");
  private static final Path PAGE = Path.of("../docs/scale.md");

  /** A model of 34.5 GB. */
  private static final String LONG = "32-cores/2026-11-29-bef063b2";

  /** The same run with one of 8.7 GB. */
  private static final String SHORT = "32-cores/2026-11-29-bef063b2-short";

  private static final String OLD = "32-cores/2026-11-28-500931ad";
  private static final String COPIED = "32-cores/2026-11-28-e843a7fb";
  private static final String SAVED = "32-cores/2026-11-28-d36d4f4b";

  /** Another machine. */
  private static final String LOADED_BY_ONE = "16-cores/2026-11-28-8f4f0ffe";

  private static final String LOADED_BY_TWO = "32-cores/2026-11-28-c4a7273c";
  private static final double FILES = 4;
  private static final double CLOSE = 15;

  private static final Parameters PARAMETERS = Parameters.defaults();

  private static JsonObject result(String file, String id) throws IOException {
    String text = Files.readString(RESULTS.resolve("nvidia-h200-%s.json".formatted(file)));
    for (JsonElement one :
        JsonParser.parseString(text).getAsJsonObject().getAsJsonArray("results")) {
      if (one.getAsJsonObject().get("id").getAsString().equals(id)) {
        return one.getAsJsonObject();
      }
    }
    throw new IllegalArgumentException(file + " has no " + id);
  }

  private static double median(String file, String id) throws IOException {
    return result(file, id).get("median").getAsDouble() * 1e9;
  }

  /** A run, how much it moved by how it counts, and what the simulation says. */
  enum Run {
    COPIES(COPIED, "gpus.copy.limit.both", 2),
    FILE(LONG, "gpus.read.file.both", 2),
    ONE_GPU(LONG, "shards.half.1gpu", 1),
    HALVES(LONG, "shards.half.2gpus", 1),
    HALVES_OF_RANKS(LONG, "shards.half.2ranks", 1),
    WHOLE(LONG, "shards.replicated.2gpus", 1),
    WHOLE_OF_RANKS(LONG, "shards.replicated.2ranks", 1),
    TWICE(LONG, "shards.replicated.twice", 1),
    SHORT_ONE_GPU(SHORT, "shards.half.1gpu", 1),
    SHORT_HALVES(SHORT, "shards.half.2gpus", 1),
    SHORT_HALVES_OF_RANKS(SHORT, "shards.half.2ranks", 1),
    SHORT_WHOLE(SHORT, "shards.replicated.2gpus", 1),
    SHORT_WHOLE_OF_RANKS(SHORT, "shards.replicated.2ranks", 1),
    SHORT_TWICE(SHORT, "shards.replicated.twice", 1),
    SAVE_OF_ONE(SAVED, "dcp.save.ours.1ranks", 1),
    SAVE_OF_TWO(SAVED, "dcp.save.ours.2ranks", 1),
    LOAD_OF_ONE(LOADED_BY_ONE, "dcp.load.ours.1ranks", 1),
    LOAD_OF_TWO(LOADED_BY_TWO, "dcp.load.ours.2ranks", 1);

    private final String file;
    private final String id;
    private final double times;

    Run(String file, String id, double times) {
      this.file = file;
      this.id = id;
      this.times = times;
    }

    long bytes() throws IOException {
      JsonObject conditions = result(file, id).getAsJsonObject("conditions");
      return conditions.get(conditions.has("bytes") ? "bytes" : "bytes_each").getAsLong();
    }

    double measured() throws IOException {
      return times * bytes() / median(file, id);
    }

    double predicted() throws IOException {
      long bytes = bytes();
      // The process has loaded before, so its memory is pinned. What that machine's 32 processors
      // stage for two GPUs, by plain reads.
      Parameters four =
          PARAMETERS
              .with(Parameter.FILE, bytes / FILES / 1e9 * (1 + 1e-9))
              .with(Parameter.PIN, 0)
              .with(Parameter.HOST, median(LONG, "gpus.read.file.both") / 1e9);
      Fleet one = Fleet.of(1, 1, 1, bytes);
      Fleet two = Fleet.of(1, 2, 1, bytes);
      Fleet gpu = two.withPlacement(Placement.GPU);
      Fleet alone = two.withPlacement(Placement.ALONE);
      // The disk of that machine, by plain writes of one rank.
      Parameters disk =
          PARAMETERS.with(Parameter.SSD_WRITE, median(SAVED, "dcp.write.direct.1ranks") / 1e9);
      return switch (this) {
        case COPIES -> copies(bytes);
        case FILE -> LoadRun.plain(alone, opened(), Way.CACHE).seconds();
        case ONE_GPU, SHORT_ONE_GPU -> LoadRun.plain(one, four, Way.CACHE).seconds();
        case HALVES, SHORT_HALVES ->
            LoadRun.plain(two.withOneProcess(true), four, Way.CACHE).seconds();
        case HALVES_OF_RANKS, SHORT_HALVES_OF_RANKS ->
            LoadRun.plain(two, four, Way.CACHE).seconds();
        case WHOLE, SHORT_WHOLE ->
            LoadRun.plain(gpu.withOneProcess(true), four, Way.CACHE).seconds();
        case WHOLE_OF_RANKS, SHORT_WHOLE_OF_RANKS -> LoadRun.plain(gpu, four, Way.CACHE).seconds();
        case TWICE, SHORT_TWICE ->
            LoadRun.plain(alone.withOneProcess(true), four, Way.CACHE).seconds();
        case SAVE_OF_ONE -> SaveRun.of(one, disk, Way.OWN).seconds();
        case SAVE_OF_TWO -> SaveRun.of(two, disk, Way.OWN).seconds();
        case LOAD_OF_ONE -> LoadRun.checkpoint(one, four, Way.CACHE).seconds();
        case LOAD_OF_TWO -> LoadRun.checkpoint(two, four, Way.CACHE).seconds();
      };
    }

    /** From pinned memory, which nothing but the GPUs' links carries. */
    private static double copies(double bytes) {
      FluidSimulation simulation = new FluidSimulation();
      for (int i = 0; i < 2; i++) {
        Link link = simulation.link("GPU", PARAMETERS.get(Parameter.GPU_LINK), 1);
        simulation.flow(bytes, List.of(new Use(link, 1)), () -> {});
      }
      return simulation.run();
    }

    /** Of a file that is open, and read into memory that is there. */
    private static Parameters opened() {
      Parameters opened = PARAMETERS.with(Parameter.ALLOCATE, 1e6);
      for (Parameter none : List.of(Parameter.OPEN, Parameter.PIN, Parameter.START)) {
        opened = opened.with(none, 0);
      }
      return opened;
    }

    double deviation() throws IOException {
      return 100 * (predicted() / measured() - 1);
    }

    /** As the page has it. */
    String row() throws IOException {
      return String.format(
          Locale.ROOT,
          "| `%s` | %.0f ms | %.0f ms | %+.0f %% |",
          id,
          measured() * 1e3,
          predicted() * 1e3,
          deviation());
    }
  }

  @ParameterizedTest
  @EnumSource
  void theSimulationIsCloseToWhatWasMeasured(Run run) throws IOException {
    assertThat(run.deviation()).as("%s: %% too long", run.id).isBetween(-CLOSE, CLOSE);
  }

  /** If this fails, and the numbers are as they should be, copy the rows to the page. */
  @Test
  void thePageHasTheSameNumbers() throws IOException {
    List<String> rows = new ArrayList<>();
    for (Run run : Run.values()) {
      rows.add(run.row());
    }
    assertThat(Files.readString(PAGE)).contains(String.join("\n", rows) + "\n");
  }

  // ---- where parameters come from

  private static void hasValue(Parameter parameter, double value) {
    assertThat(PARAMETERS.get(parameter))
        .as("%s", parameter)
        .isCloseTo(value, within(value * 0.01));
  }

  @Test
  void ratesAreThoseOfTheResults() throws IOException {
    hasValue(Parameter.GPU_LINK, median(COPIED, "gpus.copy.limit.0"));
    hasValue(Parameter.PEER_LINK, median(COPIED, "gpus.copy.peer.0"));
    double more = bytesOfOneGpu(LONG) - bytesOfOneGpu(SHORT);
    hasValue(
        Parameter.GPU_READ,
        more / (secondsOfOneGpu(LONG, "read") - secondsOfOneGpu(SHORT, "read")));
  }

  private static double bytesOfOneGpu(String file) throws IOException {
    return conditionsOfOneGpu(file).get("bytes").getAsDouble();
  }

  private static double secondsOfOneGpu(String file, String phase) throws IOException {
    return conditionsOfOneGpu(file).getAsJsonObject("seconds").get(phase).getAsDouble();
  }

  private static JsonObject conditionsOfOneGpu(String file) throws IOException {
    return result(file, "shards.half.1gpu").getAsJsonObject("conditions");
  }

  @Test
  void fixedCostsAreThoseOfTheLoadByOneGpu() throws IOException {
    hasValue(Parameter.OPEN, secondsOfOneGpu(LONG, "open") / FILES);
    hasValue(Parameter.ALLOCATE, bytesOfOneGpu(OLD) / secondsOfOneGpu(OLD, "allocate"));
    double transfer = bytesOfOneGpu(LONG) / PARAMETERS.get(Parameter.GPU_READ);
    assertThat(PARAMETERS.get(Parameter.START))
        .isCloseTo((secondsOfOneGpu(LONG, "read") - transfer) / FILES, within(1e-4));
  }

  @Test
  void whatDcpTakesIsTheRestOfTheLoadByOneRank() throws IOException {
    double without =
        LoadRun.checkpoint(
                Fleet.of(1, 1, 1, Run.LOAD_OF_ONE.bytes()),
                PARAMETERS.with(Parameter.DCP, 0).with(Parameter.PIN, 0),
                Way.CACHE)
            .seconds();
    hasValue(Parameter.DCP, Run.LOAD_OF_ONE.measured() - without);
  }

  @Test
  void measuredParametersNameAResultThatIsThere() {
    Map<Parameter, Parameters.Value> measured =
        PARAMETERS.values().entrySet().stream()
            .filter(entry -> entry.getValue().kind() == Parameters.Kind.MEASURED)
            .collect(Collectors.toMap(Map.Entry::getKey, Map.Entry::getValue));
    assertThat(measured).hasSize(7);
    assertThat(measured.values())
        .allSatisfy(
            value ->
                assertThat(
                        Stream.of(value.source().split("[: ]")[0]).map(name -> Path.of("..", name)))
                    .allMatch(Files::isRegularFile));
  }
}
