package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.PageCacheCounters;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.tools.graph.EdgePlace;
import io.gpunvme.tools.graph.GraphAlgorithm;
import io.gpunvme.tools.graph.GraphListener;
import io.gpunvme.tools.graph.GraphOptions;
import io.gpunvme.tools.graph.GraphProgram;
import io.gpunvme.tools.graph.GraphReader;
import io.gpunvme.tools.graph.GraphReport;
import io.gpunvme.tools.graph.GraphResult;
import java.io.IOException;
import java.nio.channels.Channels;
import java.nio.channels.WritableByteChannel;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme bench graph IMAGE}. */
@Command(
    name = "graph",
    description = {
      "Run a program over a graph whose edges a GPU reads from an SSD, through a page cache.",
      "Offsets and what belongs to vertices are in GPU memory. bfs: the level of each vertex.",
      "cc: connected components. sssp: shortest paths by weights. pagerank: ranks.",
      "An image in an ordinary file is read through an embedded SSD, and the output says so.",
      "Without a GPU, --initiator cpu is to be said: one thread of the CPU does it, with all of the"
          + " graph in memory.",
      "gpunvme graph makes images."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme bench graph kron20.graph --algorithm bfs --verify",
      "  gpunvme bench graph vfio:0000:01:00.0 --algorithm cc --cache 4GiB --placement vram --json",
      "  gpunvme bench graph kron20.graph --algorithm pagerank --results ranks.f64",
      "  gpunvme bench graph kron20.graph --algorithm bfs --edges vram           the same in"
          + " memory",
      "  gpunvme bench graph kron20.graph --algorithm bfs --source 17 --initiator cpu"
    })
final class BenchGraphCommand extends BaseCommand {
  private static final double NANOS_PER_SECOND = 1e9;

  @Parameters(
      index = "0",
      paramLabel = "IMAGE",
      description = {
        "SSDs with the image: vfio:, kmod:, sysfs:, vfio-user:, sim:file=…, stripe:…, a",
        "partition or a file on one of them; or an ordinary file."
      })
  private String image = "";

  @Option(
      names = "--algorithm",
      required = true,
      paramLabel = "WHAT",
      description = "bfs, cc, sssp, or pagerank.")
  private GraphAlgorithm algorithm = GraphAlgorithm.BFS;

  @Option(
      names = "--source",
      paramLabel = "N",
      converter = Converters.Whole.class,
      description = "bfs, sssp: the vertex to begin at (the first that has an edge).")
  private @Nullable Long source;

  @Option(
      names = "--edges",
      paramLabel = "WHERE",
      description = {
        "For comparison, where edges and weights are: ssd, or read into memory before the time",
        "begins, vram (all in GPU memory) or host (pinned, loaded by kernels over PCIe) (ssd)."
      })
  private EdgePlace edges = EdgePlace.SSD;

  @Option(
      names = "--cache",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Bytes of the page cache (a quarter of the edges).")
  private long cache;

  @Mixin private final InitiatorOption initiator = new InitiatorOption();

  @Mixin private final PageCacheOption pages = new PageCacheOption();

  @Option(
      names = "--threads",
      paramLabel = "N",
      converter = Converters.Whole.class,
      description = "GPU threads, in blocks of 256 (256 for each multiprocessor).")
  private long threads;

  @Option(
      names = "--least",
      description = {
        "Also compute the fewest reads with which a cache of this size could do, whatever it keeps",
        "(Belady's choice). Kernels then note the pages that they want, which costs time."
      })
  private boolean least;

  @Option(
      names = "--verify",
      description = "Have the CPU do the same with the graph in memory, and compare.")
  private boolean verify;

  @Option(
      names = "--results",
      paramLabel = "FILE",
      description =
          "Write what each vertex has, little endian: a u32 (level, component or distance;"
              + " 4294967295: not reached), or a double (rank).")
  private @Nullable Path results;

  @Mixin private final CommandLimits limits = new CommandLimits();

  BenchGraphCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    if (source != null && !algorithm.hasSource()) {
      throw new UsageException("--source is for bfs and sssp; " + algorithm + " begins everywhere");
    }
    boolean byCpu = initiator.kind() == InitiatorKind.CPU;
    if (edges != EdgePlace.SSD && (byCpu || cache != 0)) {
      throw new UsageException(
          "--edges " + edges + " is for a GPU, and without --cache: all edges are in memory");
    }
    if (least && (byCpu || edges != EdgePlace.SSD)) {
      throw new UsageException("--least is for a GPU that reads edges from the SSD");
    }
    StorageAddress named = ModelPlace.existing(ModelPlace.parse(image));
    Path file = byCpu || edges != EdgePlace.SSD ? null : named.file();
    StorageAddress opened = file == null ? named : FileAsSsd.of(file, false);
    try (Accelerator accelerator = byCpu ? CpuAccelerator.open() : gpu();
        GpuStorage storage = GpuStorage.open(opened, accelerator, readByCpu());
        GraphReader graph = GraphReader.open(storage)) {
      if (verify && !byCpu) {
        GraphProgram.requireVerifiable(algorithm, graph);
      }
      GraphReport report;
      try (OutputFile kept = results == null ? null : OutputFile.create(results);
          Progress progress = Progress.always(streams())) {
        GraphListener listener = GraphImageCommand.shown(progress);
        report = run(graph, accelerator, listener);
        if (verify && !byCpu) {
          GraphProgram.verify(report, graph, listener);
        }
        if (kept != null) {
          keep(report.result(), kept);
        }
      }
      print(() -> printText(opened, file != null, report), () -> object(opened, report));
    }
    return ExitCode.OK;
  }

  private GraphReport run(GraphReader graph, Accelerator accelerator, GraphListener listener) {
    long from = source == null ? -1 : source;
    if (!accelerator.gpu()) {
      return GraphProgram.runByCpu(algorithm, from, graph, listener);
    }
    GraphOptions options =
        new GraphOptions(
            edges,
            cache,
            pages.page(),
            pages.placement(),
            pages.queues(),
            pages.depth(),
            (int) Math.min(threads, Integer.MAX_VALUE / 2),
            least);
    return GraphProgram.run(
        algorithm, from, graph, InitiatorOptions.requireGpu(accelerator), options, listener);
  }

  private static GpuAccelerator gpu() {
    try {
      return GpuAccelerator.open();
    } catch (CudaNotFoundException | CudaException e) {
      String why = e instanceof CudaNotFoundException missing ? missing.summary() : e.getMessage();
      throw new CudaNotFoundException(
          why
              + ": --initiator cpu has the CPU do it, with all of the graph in memory (gpunvme"
              + " doctor says what stands in the way of a GPU)");
    }
  }

  /** Header and offsets, and all that is verified, are read by the CPU. */
  private StorageOptions readByCpu() {
    return StorageOptions.defaults()
        .with(limits.controller(false))
        .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST));
  }

  private static void keep(GraphResult result, OutputFile file) throws IOException {
    try (WritableByteChannel channel = Channels.newChannel(file.stream())) {
      long left = result.values().byteSize();
      for (long at = 0; left > 0; ) {
        long bytes = Math.min(left, 1 << 20);
        channel.write(result.values().asSlice(at, bytes).asByteBuffer());
        at += bytes;
        left -= bytes;
      }
    }
    file.commit();
  }

  // ---- output

  private static double seconds(GraphReport report) {
    return report.result().nanos() / NANOS_PER_SECOND;
  }

  /** What {@link GraphResult#amount} counts. */
  private String counted() {
    return switch (algorithm) {
      case BFS, SSSP -> "reached";
      case CC -> "components";
      case PAGERANK -> "rank_sum_millionths";
    };
  }

  private static double overLeast(GraphReport.Reads reads) {
    return (double) reads.counters().reads() / reads.least();
  }

  private static String edgesIn(GraphReport report) {
    return switch (report.place()) {
      case SSD -> "the SSD";
      case VRAM -> "GPU memory";
      case HOST -> "host memory";
    };
  }

  private void printText(StorageAddress opened, boolean throughEmbedded, GraphReport report) {
    GraphResult result = report.result();
    out().println(image + ": " + GraphImageCommand.text(report.header()));
    if (throughEmbedded) {
      out().println("read through an embedded SSD: " + opened);
    }
    out().println();
    Table table =
        new Table(2)
            .row("algorithm", algorithm + (result.source() < 0 ? "" : " from " + result.source()))
            .row(counted().replace('_', ' '), Long.toString(result.amount()))
            .row("rounds", Integer.toString(result.rounds()))
            .row("time", "%.3f s".formatted(seconds(report)))
            .row("edges visited", Long.toString(result.edges()))
            .row("edges/s", "%.3g M".formatted(result.edges() / seconds(report) / 1e6))
            .row("by", report.accelerator())
            .row("edges in", edgesIn(report));
    GraphReport.Reads reads = report.reads();
    if (reads != null) {
      PageCacheCounters counters = reads.counters();
      table
          .row("reads", counters.reads() + " of " + Sizes.format(reads.pageBytes()))
          .row(
              "least reads",
              least
                  ? "%d (%.3f times)".formatted(reads.least(), overLeast(reads))
                  : "not asked for")
          .row("bytes read", Sizes.format(counters.reads() * reads.pageBytes()))
          .row("hit rate", "%.1f %%".formatted(100 * counters.hitRate()))
          .row("cache", Sizes.format(reads.cacheBytes()))
          .row("placement", reads.placement().toString())
          .row("queues", reads.queuePairs() + " of depth " + reads.depth());
    }
    table.row("verified", verify ? report.byGpu() ? "as the CPU's" : "it is the CPU's" : "no");
    table.print(out());
  }

  private Map<String, Object> object(StorageAddress opened, GraphReport report) {
    GraphResult result = report.result();
    GraphReport.Reads reads = report.reads();
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("benchmark", "graph");
    all.put("algorithm", algorithm.toString());
    all.put("image", image);
    all.put("device", opened.toString());
    GraphImageCommand.describe(report.header(), all);
    all.put("initiator", report.byGpu() ? "GPU" : "CPU");
    all.put("accelerator", report.accelerator());
    all.put("edges_in", report.place().toString());
    all.put("source", result.source() < 0 ? null : result.source());
    all.put(counted(), result.amount());
    all.put("rounds", result.rounds());
    all.put("seconds", seconds(report));
    all.put("edges_visited", result.edges());
    all.put("edges_per_second", result.edges() / seconds(report));
    if (reads != null) {
      PageCacheCounters counters = reads.counters();
      all.put("placement", reads.placement().toString());
      all.put("queue_pairs", reads.queuePairs());
      all.put("depth", reads.depth());
      all.put("cache_bytes", reads.cacheBytes());
      all.put("page_bytes", reads.pageBytes());
      all.put("acquires", counters.acquires());
      all.put("hit_rate", counters.hitRate());
      all.put("reads", counters.reads());
      all.put("least_reads", least ? reads.least() : null);
      all.put("reads_over_least", least ? overLeast(reads) : null);
      all.put("read_bytes", counters.reads() * reads.pageBytes());
      all.put("read_failures", counters.readFailures());
    }
    all.put("verified", verify && report.byGpu());
    all.put("results", results == null ? null : results.toString());
    return all;
  }
}
