package io.gpunvme.bench;

import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.tools.bench.BenchMachine;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.Collection;
import java.util.Locale;
import org.openjdk.jmh.profile.GCProfiler;
import org.openjdk.jmh.results.Result;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.util.Statistics;

/**
 * Runs the queue benchmarks in one go and writes the result file: {@code BenchMain RESULTS-FOLDER
 * COMMIT [seconds per iteration [classes]]}, where the last is a regular expression.
 */
public final class BenchMain {
  private static final String SERVED = "vfio-user.4k.";
  private static final int WARMUPS = 3;
  private static final int ITERATIONS = 7;

  private BenchMain() {}

  /** See the class. */
  public static void main(String[] args) throws RunnerException, IOException {
    if (args.length < 2) {
      System.err.println(
          "usage: BenchMain RESULTS-FOLDER COMMIT [seconds per iteration [classes]]");
      System.exit(2);
    }
    TimeValue each = TimeValue.seconds(args.length > 2 ? Long.parseLong(args[2]) : 2);
    Options options =
        new OptionsBuilder()
            .include(args.length > 3 ? args[3] : "io.gpunvme.bench.")
            .forks(1)
            .warmupIterations(WARMUPS)
            .warmupTime(each)
            .measurementIterations(ITERATIONS)
            .measurementTime(each)
            .shouldFailOnError(true)
            .addProfiler(GCProfiler.class)
            .jvmArgsAppend("--enable-native-access=ALL-UNNAMED", "-XX:+UseSerialGC")
            .build();
    Collection<RunResult> runs = new Runner(options).run();
    BenchMachine machine = BenchMachine.withoutGpu();
    JsonObject file = new JsonObject();
    file.add("machine", machine.toJson());
    file.addProperty("commit", args[1]);
    String date = LocalDate.now(ZoneOffset.UTC).toString();
    file.addProperty("date", date);
    JsonArray results = results(runs);
    IdleServer.measure().forEach(results::add);
    file.add("results", results);
    Path out = Path.of(args[0], machine.id(), date + "-" + args[1] + ".json");
    Files.createDirectories(out.getParent());
    Files.writeString(
        out,
        new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create().toJson(file) + "\n");
    System.err.println("wrote " + out);
  }

  private static JsonArray results(Collection<RunResult> runs) {
    JsonArray results = new JsonArray();
    for (RunResult run : runs) {
      results.add(result(run, runs));
    }
    return results;
  }

  /** What limits a run, empty if nothing in these does. */
  private static String limit(RunResult run) {
    String id = id(run);
    if (id.startsWith(SERVED) && !id.contains(".copy.")) {
      return id.replaceFirst("(here|process)", "copy");
    }
    return id.startsWith("queue.cpu.4k") ? "cpu.copy.4k" : "";
  }

  private static double median(Collection<RunResult> runs, String id) {
    return runs.stream()
        .filter(r -> id(r).equals(id))
        .mapToDouble(r -> r.getPrimaryResult().getStatistics().getPercentile(50))
        .findFirst()
        .orElseThrow();
  }

  private static JsonObject result(RunResult run, Collection<RunResult> runs) {
    Result<?> primary = run.getPrimaryResult();
    Statistics s = primary.getStatistics();
    JsonObject json = new JsonObject();
    json.addProperty("id", id(run));
    boolean served = id(run).startsWith(SERVED);
    json.addProperty("unit", primary.getScoreUnit().equals("ops/s") ? "commands/s" : "ns/command");
    json.addProperty("median", round(s.getPercentile(50)));
    json.addProperty("min", round(s.getMin()));
    json.addProperty("max", round(s.getMax()));
    json.addProperty("samples", s.getN());
    Result<?> allocated = run.getSecondaryResults().get("gc.alloc.rate.norm");
    if (allocated == null) {
      allocated = run.getSecondaryResults().get("·gc.alloc.rate.norm");
    }
    JsonObject conditions = new JsonObject();
    conditions.addProperty("block_bytes", Blocks.SIZE);
    conditions.addProperty(
        "image_bytes",
        served ? Long.parseLong(run.getParams().getParam("mebibytes")) << 20 : Blocks.IMAGE);
    conditions.addProperty(
        "queue_depth",
        served ? Integer.parseInt(run.getParams().getParam("depth")) : QueueRig.DEPTH);
    conditions.addProperty("queue_pairs", 1);
    conditions.addProperty("order", "random");
    if (allocated != null) {
      conditions.addProperty("allocated_bytes_per_command", round(allocated.getScore()));
    }
    json.add("conditions", conditions);
    String limitId = limit(run);
    if (!limitId.isEmpty()) {
      double value = median(runs, limitId);
      JsonObject limit = new JsonObject();
      limit.addProperty("id", limitId);
      limit.addProperty("value", round(value));
      limit.addProperty("ratio", round(s.getPercentile(50) / value));
      json.add("limit", limit);
    }
    // A run whose data or counts were wrong has thrown in its tear-down and never gets here.
    json.addProperty("verified", true);
    return json;
  }

  private static String id(RunResult run) {
    String benchmark = run.getParams().getBenchmark();
    if (benchmark.endsWith("BareCopyBenchmark.copy")) {
      return "cpu.copy.4k";
    }
    if (benchmark.endsWith("DriverBenchmark.commands")) {
      return "queue.cpu.driver-alone";
    }
    if (benchmark.endsWith("ServedBenchmark.reads")) {
      return SERVED
          + run.getParams().getParam("transport")
          + ".qd"
          + run.getParams().getParam("depth")
          + "."
          + run.getParams().getParam("mebibytes")
          + "m";
    }
    String where = run.getParams().getParam("controller");
    return run.getParams().getParam("data").equals("copy")
        ? "queue.cpu.4k." + where
        : "queue.cpu.nocopy." + where;
  }

  static double round(double value) {
    return Double.parseDouble(String.format(Locale.ROOT, "%.4g", value));
  }
}
