package io.gpunvme.bench;

import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathCounters;
import io.gpunvme.storage.path.PathStats;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.file.SourceFile;
import io.gpunvme.storage.path.pinned.PinnedPath;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.SplittableRandom;

/**
 * Compares settings of the pinned path on one file, to choose their defaults: {@link #USAGE}. A row
 * a setting, all results in a JSON file, and at the end the best of each kind. Every first
 * repetition is checked whole and not counted; of the others places drawn at random are. Exit
 * codes: 0 done, 1 something failed, 2 usage.
 */
public final class PinnedSweep {
  private static final String USAGE =
      """
      usage: PinnedSweep FILE [--size MIB] [--reps N] [--only PREFIX] [--json FILE]
                         [--accelerator auto|gpu|cpu]
        FILE     is written with a pattern unless it is there, and kept
        --size   of the file in MiB (4096)
        --reps   counted repetitions of each setting (3)
        --only   settings whose id starts so: pinned.seq.cold
        --json   where results go (pinned-sweep.json)\
      """;

  private static final int BLOCK = 4096;
  private static final int RANDOM_BLOCKS = 1 << 16;
  private static final int SPOTS = 64;
  private static final int SPOT = 64 << 10;

  private final PatternFile file;
  private final Accelerator accelerator;
  private final DeviceBuffer buffer;
  private final int repetitions;
  private final SplittableRandom random = new SplittableRandom(5);
  private final JsonArray results = new JsonArray();

  private PinnedSweep(PatternFile file, Accelerator accelerator, int repetitions) {
    this.file = file;
    this.accelerator = accelerator;
    this.repetitions = repetitions;
    buffer = accelerator.allocate(file.bytes());
  }

  /** See the class. */
  public static void main(String[] args) throws IOException {
    if (args.length == 0 || args.length % 2 == 0) {
      System.err.println(USAGE);
      System.exit(2);
    }
    long size = 4096L << 20;
    int repetitions = 3;
    String only = "";
    Path json = Path.of("pinned-sweep.json");
    String kind = "auto";
    for (int i = 1; i < args.length; i += 2) {
      switch (args[i]) {
        case "--size" -> size = Long.parseLong(args[i + 1]) << 20;
        case "--reps" -> repetitions = Integer.parseInt(args[i + 1]);
        case "--only" -> only = args[i + 1];
        case "--json" -> json = Path.of(args[i + 1]);
        case "--accelerator" -> kind = args[i + 1];
        default -> {
          System.err.println(USAGE);
          System.exit(2);
        }
      }
    }
    PatternFile file = PatternFile.at(Path.of(args[0]), size);
    Accelerators.Choice choice = Accelerators.open(kind);
    boolean good;
    try (Accelerator accelerator = choice.accelerator()) {
      System.out.println(accelerator.name() + ": " + choice.reason());
      good = sweep(file, accelerator, repetitions, only, json);
    }
    System.exit(good ? 0 : 1);
  }

  /** Measures, prints and writes; false if a setting failed. */
  static boolean sweep(
      PatternFile file, Accelerator accelerator, int repetitions, String only, Path json)
      throws IOException {
    return new PinnedSweep(file, accelerator, repetitions).run(only, json);
  }

  private boolean run(String only, Path json) throws IOException {
    boolean good = true;
    System.out.printf(
        Locale.ROOT,
        "%-66s %9s %9s %9s %8s %9s %9s%n",
        "setting",
        "GB/s",
        "min",
        "max",
        "k/s",
        "CPU s/GB",
        "p99 us");
    for (PinnedSweepCases.Case c : PinnedSweepCases.all()) {
      if (c.id().startsWith(only)) {
        try {
          results.add(measure(c));
        } catch (StorageException | IllegalStateException e) {
          System.out.println(c.id() + " FAILED: " + e.getMessage());
          good = false;
        }
        JsonObject all = new JsonObject();
        all.addProperty("accelerator", accelerator.name());
        all.addProperty("file", file.path().toString());
        all.addProperty("bytes", file.bytes());
        all.add("results", results);
        String text = new GsonBuilder().setPrettyPrinting().create().toJson(all);
        Files.writeString(json, text + "\n");
      }
    }
    best();
    System.out.println("wrote " + json);
    return good;
  }

  private void best() {
    for (String group :
        List.of(
            "pinned.seq.cold.uring",
            "pinned.seq.cold.threads",
            "pinned.seq.warm.uring",
            "pinned.seq.warm.threads",
            "pinned.rand4k.cold.uring",
            "pinned.rand4k.cold.threads",
            "pinned.rand4k.warm.uring",
            "pinned.rand4k.warm.threads")) {
      JsonObject best = null;
      for (var element : results) {
        JsonObject result = element.getAsJsonObject();
        if (result.get("id").getAsString().startsWith(group)
            && (best == null || median(result) > median(best))) {
          best = result;
        }
      }
      if (best != null) {
        System.out.printf(
            Locale.ROOT, "best: %s %.2f GB/s%n", best.get("id").getAsString(), median(best));
      }
    }
  }

  private static double median(JsonObject result) {
    return result.get("median").getAsDouble();
  }

  // ---- one setting

  private JsonObject measure(PinnedSweepCases.Case c) {
    try (SourceFile source = SourceFile.open(file.path().toString(), false);
        PinnedPath path = PinnedPath.open(source, accelerator, c.options(), NumaHome.NONE)) {
      PatternFile.wipe(buffer);
      if (!c.cold()) {
        path.transfer(Direction.READ, ranges(false), call(new PathCounters()));
      }
      PathCounters counters = new PathCounters();
      double[] rates = new double[repetitions];
      long bytes = 0;
      double seconds = 0;
      Duration cpu = Duration.ZERO;
      double residency = 0;
      for (int i = -1; i < repetitions; i++) {
        List<Range> ranges = ranges(c.random());
        if (c.cold()) {
          source.dropCache();
        }
        residency = source.residency(0, file.bytes());
        PathCounters counting = i < 0 ? new PathCounters() : counters;
        Duration cpuBefore = cpuTime();
        long begin = System.nanoTime();
        path.transfer(Direction.READ, ranges, call(counting));
        double took = (System.nanoTime() - begin) / 1e9;
        if (i >= 0) {
          cpu = cpu.plus(cpuTime().minus(cpuBefore));
          long moved = ranges.stream().mapToLong(Range::length).sum();
          rates[i] = moved / took / 1e9;
          bytes += moved;
          seconds += took;
        }
        verify(ranges, i < 0);
      }
      JsonObject result = result(c, path, rates, counters.snapshot(), residency);
      result.addProperty("cpu_seconds_per_gb", cpu.toNanos() / (double) bytes);
      double thousands = bytes / (double) (c.random() ? BLOCK : file.bytes()) / seconds / 1e3;
      print(result, c.random() ? thousands : Double.NaN);
      return result;
    }
  }

  private PathCall call(PathCounters counters) {
    return new PathCall(file.path().toString(), counters);
  }

  private static Duration cpuTime() {
    return ProcessHandle.current().info().totalCpuDuration().orElse(Duration.ZERO);
  }

  /** The whole file, each time starting elsewhere, or blocks of it; each at a place of its own. */
  private List<Range> ranges(boolean blocks) {
    List<Range> ranges = new ArrayList<>();
    if (blocks) {
      long count = Math.min(RANDOM_BLOCKS, file.bytes() / BLOCK);
      for (long i = 0; i < count; i++) {
        long offset = random.nextLong(file.bytes() / BLOCK) * BLOCK;
        ranges.add(new Range(offset, buffer, i * BLOCK, BLOCK));
      }
    } else {
      long start = random.nextLong(file.bytes() >> 23) << 22;
      ranges.add(new Range(start, buffer, 0, file.bytes() - start));
      ranges.add(new Range(0, buffer, file.bytes() - start, start));
    }
    return ranges;
  }

  private void verify(List<Range> ranges, boolean whole) {
    if (whole) {
      ranges.forEach(range -> file.require(range, 0, range.length()));
      return;
    }
    for (int i = 0; i < SPOTS; i++) {
      Range range = ranges.get(random.nextInt(ranges.size()));
      long length = Math.min(SPOT, range.length());
      if (length > 0) {
        long from = random.nextLong(range.length() - length + 1) / Long.BYTES * Long.BYTES;
        file.require(range, from, length);
      }
    }
  }

  private JsonObject result(
      PinnedSweepCases.Case c, PinnedPath path, double[] rates, PathStats stats, double resident) {
    double[] sorted = rates.clone();
    Arrays.sort(sorted);
    JsonObject result = new JsonObject();
    result.addProperty("id", c.id());
    result.addProperty("unit", "GB/s");
    result.addProperty("median", sorted[sorted.length / 2]);
    result.addProperty("min", sorted[0]);
    result.addProperty("max", sorted[sorted.length - 1]);
    result.add("samples", new GsonBuilder().create().toJsonTree(rates));
    result.addProperty("mode", path.mode());
    result.addProperty("residency_before", resident);
    result.addProperty("operations", stats.operations());
    result.addProperty("latency_p50_ns", stats.latency().getValueAtPercentile(50));
    result.addProperty("latency_p99_ns", stats.latency().getValueAtPercentile(99));
    result.addProperty("pinned_bytes", path.pinnedBytes());
    result.addProperty("verified", true);
    return result;
  }

  private static void print(JsonObject result, double thousands) {
    System.out.printf(
        Locale.ROOT,
        "%-66s %9.2f %9.2f %9.2f %8.0f %9.3f %9.0f%n",
        result.get("id").getAsString(),
        median(result),
        result.get("min").getAsDouble(),
        result.get("max").getAsDouble(),
        thousands,
        result.get("cpu_seconds_per_gb").getAsDouble(),
        result.get("latency_p99_ns").getAsDouble() / 1e3);
  }
}
