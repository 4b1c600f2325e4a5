package io.gpunvme.cli;

import com.google.gson.JsonObject;
import io.gpunvme.base.Version;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.tools.bench.BenchMachine;
import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.bench.MeasurementFile;
import io.gpunvme.tools.bench.PathBench;
import io.gpunvme.tools.bench.PathBenchListener;
import io.gpunvme.tools.bench.PathBenchOptions;
import io.gpunvme.tools.bench.Repetitions;
import java.io.IOException;
import java.io.PrintStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme bench paths [FOLDER]}. */
@Command(
    name = "paths",
    description = {
      "Read the same file by every storage path, and compare the rates.",
      "Each reads it from start to end, and 4 KiB blocks at random, from a cold and from a warm",
      "page cache. For comparison, measure the rates of the disk and of the page cache alone.",
      "direct reads through an embedded SSD. Every byte that arrives is checked.",
      "The command makes the file in FOLDER and removes it. It leaves out paths that are not"
          + " possible,",
      "and prints the reason. If --paths names such a path, the command fails."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme bench paths",
      "  gpunvme bench paths /data --size 4GiB --out results",
      "  gpunvme bench paths /data --paths pinned,mmap --blocks 1MiB,4MiB --repetitions 3 --json",
      "  gpunvme bench paths /data --paths cufile --threads 1,8,32 --gdsio",
      "  gpunvme bench report results                     plots of what --out kept"
    })
final class BenchPathsCommand extends BaseCommand {
  private static final long DEFAULT_SIZE = 1L << 30;
  private static final String LIMITS = "limit.";
  private static final String PATHS = "paths.";

  @Parameters(
      index = "0",
      arity = "0..1",
      paramLabel = "FOLDER",
      description = "Folder for the file, on the disk to measure (.).")
  private Path folder = Path.of(".");

  @Option(
      names = "--size",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description =
          "Size of the file, a multiple of 16MiB (1GiB). The accelerator and the host each need"
              + " that much free memory.")
  private long size = DEFAULT_SIZE;

  @Option(
      names = "--paths",
      paramLabel = "LIST",
      split = ",",
      description = "Paths to measure: direct, cufile, pinned, mmap, auto (all of them).")
  private @Nullable List<String> paths;

  @Option(
      names = "--blocks",
      paramLabel = "LIST",
      split = ",",
      converter = Converters.Size.class,
      description = "Sizes of long reads, powers of two from 64KiB to 16MiB (256KiB,4MiB,16MiB).")
  private @Nullable List<Long> blocks;

  @Option(
      names = "--threads",
      paramLabel = "LIST",
      split = ",",
      converter = Converters.Count.class,
      description = "Thread counts to try for cuFile; the best result counts (1,4,8,16,32).")
  private @Nullable List<Integer> threads;

  @Option(
      names = "--reads",
      paramLabel = "N",
      converter = Converters.Whole.class,
      description =
          "Number of random reads from a warm page cache; an eighth of it from a cold one"
              + " (200000).")
  private @Nullable Long reads;

  @Option(
      names = "--repetitions",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "Repetitions of each measurement, after one more that is not counted (5).")
  private @Nullable Integer repetitions;

  @Option(
      names = "--workers",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "Threads of the embedded SSD of the path direct (processors - 2, 12 at most).")
  private @Nullable Integer workers;

  @Mixin private final AcceleratorOption accelerator = new AcceleratorOption();

  @Option(
      names = "--gdsio",
      description =
          "Instead of the table, print one line for each result, in the format of NVIDIA's gdsio"
              + " and in the same order.")
  private boolean gdsio;

  @Option(
      names = "--out",
      paramLabel = "DIR",
      description = "Keep the results as a file in this folder, for gpunvme bench report.")
  private @Nullable Path out;

  BenchPathsCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    if (gdsio && json()) {
      throw new UsageException("--gdsio and --json both write to standard output; leave out one");
    }
    if (!Files.exists(folder)) {
      throw new NoSuchFileException(folder.toString());
    }
    if (!Files.isDirectory(folder)) {
      throw new UsageException(folder + " is not a folder");
    }
    PathBenchOptions options = options();
    Watcher watcher = new Watcher();
    Accelerators.Choice choice = accelerator.open();
    try (Accelerator opened = choice.accelerator()) {
      List<Measurement> results = measure(opened, options, watcher);
      Path kept = keep(opened, results);
      print(
          () -> printText(choice, results, watcher, kept),
          () -> object(choice, results, watcher, kept));
    }
    return failed(watcher) ? ExitCode.FAILURE : ExitCode.OK;
  }

  private PathBenchOptions options() {
    PathBenchOptions usual = PathBenchOptions.in(folder);
    List<Long> sizes = blocks;
    return new PathBenchOptions(
        folder,
        size,
        paths == null ? usual.paths() : paths,
        sizes == null ? usual.blocks() : sizes.stream().map(BenchPathsCommand::whole).toList(),
        reads == null ? usual.randomReads() : whole(reads),
        threads == null ? usual.cufileThreads() : threads,
        repetitions == null ? usual.repetitions() : Repetitions.of(repetitions),
        workers == null ? usual.workers() : workers);
  }

  /** A number too large for an int is too large for the options too, and they report it. */
  private static int whole(long value) {
    return (int) Math.min(Integer.MAX_VALUE, value);
  }

  /** Measures in a folder of its own, which is deleted however the command ends. */
  private List<Measurement> measure(Accelerator opened, PathBenchOptions options, Watcher watcher)
      throws IOException {
    Path own = Leftovers.add(Files.createTempDirectory(folder, "gpunvme-bench-"));
    try (Progress progress = Progress.always(streams())) {
      watcher.progress = progress;
      try (PathBench bench = new PathBench(opened, options.at(own), watcher)) {
        return bench.run();
      }
    } finally {
      Leftovers.delete(own);
    }
  }

  private @Nullable Path keep(Accelerator opened, List<Measurement> results) throws IOException {
    Path where = out;
    if (where == null) {
      return null;
    }
    String commit = System.getProperty("gpunvme.commit", Version.VERSION).strip();
    MeasurementFile file = MeasurementFile.beside(where, BenchMachine.read(opened), commit);
    for (Measurement m : results) {
      file.add(m);
    }
    return file.path();
  }

  /** Whether there is no result at all, or none of a path that {@code --paths} names. */
  private boolean failed(Watcher watcher) {
    List<String> wanted = paths == null ? List.of("") : paths;
    for (String path : wanted) {
      String prefix = PATHS + (path.isEmpty() ? "" : path + ".");
      if (watcher.measured.stream().noneMatch(id -> id.startsWith(prefix))) {
        if (!gdsio) {
          say(watcher, prefix);
        }
        return true;
      }
    }
    return false;
  }

  private void say(Watcher watcher, String prefix) {
    watcher.skipped.entrySet().stream()
        .filter(e -> e.getKey().startsWith(prefix))
        .findFirst()
        .ifPresent(
            e ->
                streams()
                    .err()
                    .println("gpunvme bench paths: " + e.getKey() + ": " + e.getValue()));
  }

  /** Shows the progress, and keeps the reasons why results are missing. */
  private static final class Watcher implements PathBenchListener {
    private final Map<String, String> skipped = new LinkedHashMap<>();
    private Progress progress = Progress.NONE;
    private final List<String> measured = new ArrayList<>();

    @Override
    public void begins(String what, long bytes) {
      progress.begin(what, bytes);
    }

    @Override
    public void moved(long bytes) {
      progress.moved(bytes);
    }

    @Override
    public void measured(Measurement result) {
      measured.add(result.id());
    }

    @Override
    public void skipped(String id, String why) {
      skipped.put(id, why);
    }
  }

  // ---- output

  private void printText(
      Accelerators.Choice choice, List<Measurement> results, Watcher watcher, @Nullable Path kept) {
    if (gdsio) {
      results.stream()
          .filter(m -> !m.id().startsWith(LIMITS))
          .forEach(m -> out().println(GdsioLines.of(m)));
      printSkipped(watcher.skipped, streams().err());
      return;
    }
    out().printf("%s in %s, to %s%n%n", Sizes.format(size), folder, choice.accelerator().name());
    Table table =
        new Table(0)
            .row(
                "", "median", "min", "max", "", "of limit", "of peer", "CPU s/GB", "cached", "how");
    results.forEach(m -> row(table, m));
    table.print(out());
    if (!watcher.skipped.isEmpty()) {
      out().println();
      printSkipped(watcher.skipped, out());
    }
    if (kept != null) {
      out().println();
      out().println("kept " + kept);
    }
  }

  private void row(Table table, Measurement m) {
    Measurement.Limit limit = m.limit();
    Measurement.Peer peer = m.peer();
    table.row(
        m.id(),
        NumberTexts.number(m, m.median()),
        NumberTexts.number(m, m.min()),
        NumberTexts.number(m, m.max()),
        NumberTexts.unit(m),
        limit == null ? "" : ratio(m.median() / limit.value()),
        peer == null ? "" : ratio(m.median() / peer.value()),
        m.conditions().get("cpu_seconds_per_gb") instanceof Double d ? ratio(d) : "",
        m.conditions().get("resident_before") instanceof Double d ? percent(d) : "",
        m.conditions().getOrDefault("mode", m.conditions().get("threads") + " threads"));
  }

  private static String ratio(double value) {
    return String.format(Locale.ROOT, "%.2f", value);
  }

  private static String percent(double share) {
    return String.format(Locale.ROOT, "%.0f %%", 100 * share);
  }

  /** One line for all results of a path that are missing for the same reason. */
  private static void printSkipped(Map<String, String> skipped, PrintStream to) {
    Map<String, List<String>> byReason = new LinkedHashMap<>();
    skipped.forEach((id, why) -> byReason.computeIfAbsent(why, _ -> new ArrayList<>()).add(id));
    byReason.forEach(
        (why, ids) -> {
          String more = ids.size() == 1 ? "" : " and " + (ids.size() - 1) + " more";
          to.println("not measured: " + ids.getFirst() + more + ": " + why);
        });
  }

  private Map<String, Object> object(
      Accelerators.Choice choice, List<Measurement> results, Watcher watcher, @Nullable Path kept) {
    List<JsonObject> list = results.stream().map(MeasurementFile::json).toList();
    List<Map<String, Object>> missing = new ArrayList<>();
    watcher.skipped.forEach(
        (id, why) -> {
          Map<String, Object> one = new LinkedHashMap<>();
          one.put("id", id);
          one.put("reason", why);
          missing.add(one);
        });
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("benchmark", "paths");
    object.put("folder", folder.toString());
    object.put("file_bytes", size);
    object.put("accelerator", choice.accelerator().name());
    object.put("accelerator_reason", choice.reason());
    object.put("results", list);
    object.put("not_measured", missing);
    object.put("kept", kept == null ? null : kept.toString());
    return object;
  }
}
