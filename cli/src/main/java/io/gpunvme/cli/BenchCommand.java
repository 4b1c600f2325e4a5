package io.gpunvme.cli;

import com.google.gson.JsonObject;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Table;
import io.gpunvme.cuda.Cuda;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.tools.bench.CpuBenchmarks;
import io.gpunvme.tools.bench.GpuBenchmarks;
import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.bench.MeasurementFile;
import io.gpunvme.tools.bench.Repetitions;
import java.io.IOException;
import java.time.Duration;
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

/** {@code gpunvme bench WHAT}. */
@Command(
    name = "bench",
    description = {
      "Measure an initiator on embedded SSDs in memory, or on SSDs of yours (--device).",
      "queue: commands per second, and the latency of one, against a responder that moves no data",
      "(GPU only); with --device, of reads of its first block.",
      "random: random blocks of 4 KiB and of 512 bytes. stream: long reads, pipelined.",
      "layers: reads of 64 MiB layers, while a kernel works on the layer before; with --device and",
      "without a GPU, threads of the CPU work.",
      "SSDs of yours are only read, unless --mix and --allow-write let them be written, too.",
      "Every count and every block is checked. If one is wrong, the command fails.",
      "paths: the same file by every storage path (gpunvme bench paths --help).",
      "graph: programs over a graph whose edges are on an SSD (gpunvme bench graph --help).",
      "features, embedding: random rows of a matrix, gathered through a page cache, and written",
      "back (gpunvme bench features --help).",
      "report: a page with plots from result files (gpunvme bench report --help)."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme bench random --initiator cpu",
      "  gpunvme bench random --device vfio:0000:01:00.0 --queues 8 --depth 64 --seconds 10",
      "  gpunvme bench random --device vfio:0000:01:00.0 --range 1GiB+64GiB --blocks"
          + " 512,4KiB,64KiB",
      "  gpunvme bench random --device vfio:0000:01:00.0 --mix 70 --range 1GiB+4GiB --allow-write",
      "  gpunvme bench stream --device stripe:vfio:0000:01:00.0,vfio:0000:02:00.0",
      "  gpunvme bench layers --device vfio:0000:01:00.0 --range 64GiB",
      "  gpunvme bench queue --device vfio:0000:01:00.0",
      "  gpunvme bench queue --queues 64",
      "  gpunvme bench queue --placement vram --queues 4 --warps 64",
      "  gpunvme bench stream --placement vram-data --seconds 5 --json",
      "  gpunvme bench paths /data --size 4GiB",
      "  gpunvme bench graph kron20.graph --algorithm bfs",
      "  gpunvme bench features --row-bytes 512 --skew 4",
      "  gpunvme bench report bench/results"
    })
final class BenchCommand extends BaseCommand {
  private static final int LARGE_BLOCK = 4096;
  private static final int SMALL_BLOCK = 512;

  /** Required, but only where no subcommand follows. */
  @Parameters(
      index = "0",
      arity = "0..1",
      paramLabel = "WHAT",
      description = "queue, random, stream, or layers.")
  private @Nullable Benchmark wanted;

  private Benchmark what = Benchmark.QUEUE;

  @Mixin private final InitiatorOption initiator = new InitiatorOption();

  @Option(
      names = "--placement",
      paramLabel = "WHERE",
      converter = Converters.Where.class,
      description = {
        "Place of queues and data: host, vram-data (data in GPU memory), or vram (both).",
        "Default: host, but vram-data for the GPU's stream; with --device as demo."
      })
  private @Nullable Placement placement;

  @Option(
      names = "--queues",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "I/O queue pairs (48; stream 2; CPU, or with --device, 4).")
  private int queues;

  @Option(
      names = "--depth",
      paramLabel = "N",
      converter = Converters.Count.class,
      description =
          "Commands in flight per queue pair (queue 1024, random 64, stream 64; CPU 16; with "
              + "--device 256 of a GPU).")
  private int depth;

  @Option(
      names = "--warps",
      paramLabel = "N",
      converter = Converters.Count.class,
      description =
          "queue: this many warps share the queue pairs. By default, each warp has its own pair.")
  private int warps;

  @Option(
      names = "--seconds",
      paramLabel = "S",
      converter = Converters.Count.class,
      description = "Time for which each measurement is repeated (1).")
  private int seconds = 1;

  @Mixin private final BenchSsds ssds = new BenchSsds();

  BenchCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    if (wanted == null) {
      throw new UsageException(
          "WHAT is missing: queue, random, stream, layers, paths, graph, features, embedding, or"
              + " report");
    }
    what = wanted;
    check();
    if (ssds.wanted()) {
      return measureSsds();
    }
    List<Measurement> results = new ArrayList<>();
    String who = byGpu() ? onGpu(results) : onCpu(results);
    print(() -> printText(who, results), () -> object(who, results));
    return ExitCode.OK;
  }

  private int measureSsds() throws IOException {
    InitiatorOptions options =
        InitiatorOptions.defaults().with(initiator.kind(), placement).with(queues, depth, 0);
    BenchSsds.Outcome outcome;
    try (Progress progress = Progress.on(streams())) {
      Duration time = Duration.ofSeconds(seconds);
      outcome = ssds.run(what, options, time, progress);
    }
    Object who = outcome.results().getFirst().conditions().get("initiator");
    print(
        () -> {
          printText(
              who + ", to " + outcome.accelerator() + ": " + outcome.reason(), outcome.results());
          BenchSsds.print(outcome, out());
        },
        () -> {
          Map<String, Object> object = object(String.valueOf(who), outcome.results());
          BenchSsds.describe(outcome, object);
          return object;
        });
    return ExitCode.OK;
  }

  private void check() {
    ssds.requireSense(what);
    if (warps != 0 && (what != Benchmark.QUEUE || ssds.wanted())) {
      throw new UsageException("--warps is for bench queue without --device");
    }
    if (!ssds.wanted()) {
      checkEmbedded();
    }
  }

  private void checkEmbedded() {
    if (what == Benchmark.LAYERS && (placement != null || queues != 0 || depth != 0)) {
      throw new UsageException(
          "bench layers takes --placement, --queues and --depth with --device only");
    }
    boolean cpu = initiator.kind() == InitiatorKind.CPU;
    if (cpu && what == Benchmark.LAYERS) {
      throw new UsageException(
          "bench layers without --device needs a GPU: leave out --initiator cpu");
    }
    if (cpu && what == Benchmark.QUEUE) {
      throw new UsageException(
          "bench queue without --device needs a GPU: leave out --initiator cpu");
    }
    if (cpu && placement != null && placement != Placement.HOST) {
      throw new UsageException("--initiator cpu works with --placement host only");
    }
    if (what == Benchmark.QUEUE && placement == Placement.VRAM_DATA) {
      throw new UsageException("bench queue moves no data: --placement must be host or vram");
    }
  }

  /** Auto falls back to the CPU only if no other option needs a GPU. */
  private boolean byGpu() {
    if (initiator.kind() != InitiatorKind.AUTO) {
      return initiator.kind() == InitiatorKind.GPU;
    }
    boolean needed =
        what == Benchmark.QUEUE
            || what == Benchmark.LAYERS
            || (placement != null && !placement.hostData());
    return needed || Cuda.isAvailable();
  }

  private Repetitions repetitions() {
    return Repetitions.lasting(Duration.ofSeconds(seconds));
  }

  private String onGpu(List<Measurement> results) {
    try (GpuAccelerator accelerator = GpuAccelerator.open();
        GpuBenchmarks gpu = GpuBenchmarks.open(accelerator)) {
      Repetitions times = repetitions();
      Placement where = placement;
      switch (what) {
        case QUEUE -> {
          boolean vram = where == Placement.VRAM;
          results.add(gpu.queue(vram, queues, depth, warps, times));
          if (!vram) {
            results.add(gpu.roundTrip(times));
          }
          results.add(gpu.latency(vram, warps != 0, times));
        }
        case RANDOM -> {
          Placement data = where == null ? Placement.HOST : where;
          results.add(gpu.random(data, LARGE_BLOCK, queues, depth, times));
          results.add(gpu.random(data, SMALL_BLOCK, queues, depth, times));
        }
        case LAYERS -> results.addAll(gpu.layers(times));
        case STREAM -> {
          results.add(gpu.ceiling(times));
          results.add(
              gpu.stream(where == null ? Placement.VRAM_DATA : where, queues, depth, times));
        }
      }
      return accelerator.name();
    }
  }

  private String onCpu(List<Measurement> results) {
    if (what == Benchmark.RANDOM) {
      results.add(CpuBenchmarks.random(LARGE_BLOCK, queues, depth, repetitions()));
      results.add(CpuBenchmarks.random(SMALL_BLOCK, queues, depth, repetitions()));
    } else {
      results.add(CpuBenchmarks.stream(queues, depth, repetitions()));
    }
    return "CPU";
  }

  // ---- output

  private void printText(String who, List<Measurement> results) {
    out().println("initiator " + who);
    out().println();
    Table table = new Table(0).row("", "median", "min", "max", "");
    for (Measurement m : results) {
      table.row(
          m.id(),
          NumberTexts.number(m, m.median()),
          NumberTexts.number(m, m.min()),
          NumberTexts.number(m, m.max()),
          NumberTexts.unit(m));
    }
    table.print(out());
    for (Measurement m : results) {
      out().println();
      out().println(m.id());
      Table conditions = new Table(2);
      m.conditions()
          .forEach(
              (name, value) -> conditions.row(name.replace('_', ' '), NumberTexts.text(value)));
      Measurement.Limit limit = m.limit();
      if (limit != null) {
        conditions.row("of " + limit.id(), NumberTexts.text(m.median() / limit.value()));
      }
      conditions.print(out());
    }
  }

  private Map<String, Object> object(String who, List<Measurement> results) {
    List<JsonObject> list = new ArrayList<>();
    for (Measurement m : results) {
      list.add(MeasurementFile.json(m));
    }
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("benchmark", what.toString());
    object.put("initiator", who);
    object.put("results", list);
    return object;
  }

  /** What is measured. */
  enum Benchmark {
    QUEUE,
    RANDOM,
    STREAM,
    LAYERS;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }
}
