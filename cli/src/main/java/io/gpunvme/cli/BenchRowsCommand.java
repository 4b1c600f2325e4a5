package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.queue.PageCacheCounters;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.tools.rows.RowBench;
import io.gpunvme.tools.rows.RowOptions;
import io.gpunvme.tools.rows.RowReport;
import java.io.IOException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** What {@code gpunvme bench features} and {@code gpunvme bench embedding} have in common. */
abstract class BenchRowsCommand extends BaseCommand {
  private static final double NANOS_PER_SECOND = 1e9;

  @Parameters(
      index = "0",
      arity = "0..1",
      paramLabel = "ADDRESS",
      description = {
        "SSDs of yours: vfio:, kmod:, sysfs:, vfio-user:, sim:…, stripe:…, a partition or a file"
            + " on",
        "one of them; or an ordinary file, which an embedded SSD serves. One in memory is filled"
            + " with",
        "random bytes (sim:size=256MiB,latency=0)."
      })
  private String address = "sim:size=256MiB,latency=0";

  @Option(
      names = "--row-bytes",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Bytes of a row; the matrix has as many as fit (4KiB).")
  private long rowBytes = 4096;

  @Option(
      names = "--batch",
      paramLabel = "N",
      converter = Converters.Whole.class,
      description = "Rows at a time (4096).")
  private long batch = 4096;

  @Option(
      names = "--batches",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "How often, after one more that is not counted (10).")
  private int batches = 10;

  @Option(
      names = "--skew",
      paramLabel = "K",
      description =
          "1: each row as often as any other; larger: row n*u^K of n, for a random u below 1 (1).")
  private double skew = 1;

  @Option(
      names = "--cache",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Bytes of the GPU's page cache (64MiB).")
  private long cache = 64 << 20;

  @Mixin private final InitiatorOption initiator = new InitiatorOption();

  @Mixin private final PageCacheOption pages = new PageCacheOption();

  @Mixin private final CommandLimits limits = new CommandLimits();

  BenchRowsCommand(OutputStreams streams) {
    super(streams);
  }

  /** Whether rows are written back. */
  abstract boolean updates();

  /** For the JSON. */
  abstract String benchmark();

  @Override
  int run() throws IOException {
    RowOptions options =
        new RowOptions(
            rowBytes,
            (int) Math.min(batch, Integer.MAX_VALUE),
            batches,
            skew,
            updates(),
            cache,
            pages.page(),
            pages.placement(),
            pages.queues(),
            pages.depth());
    StorageAddress named = ModelPlace.existing(ModelPlace.parse(address));
    try (Accelerator accelerator = accelerator()) {
      Path file = accelerator.gpu() ? named.file() : null;
      StorageAddress opened = file == null ? named : FileAsSsd.of(file, updates());
      try (GpuStorage storage = GpuStorage.open(opened, accelerator, storageOptions())) {
        if (isOwn()) {
          RowBench.fill(storage, accelerator);
        }
        RowReport report;
        try (Progress progress = Progress.always(streams())) {
          long bytes = batch * rowBytes;
          progress.begin(benchmark(), (batches + 1) * bytes);
          report =
              accelerator.gpu()
                  ? RowBench.byGpu(
                      storage,
                      InitiatorOptions.requireGpu(accelerator),
                      options,
                      () -> progress.moved(bytes))
                  : RowBench.byCpu(storage, accelerator, options, () -> progress.moved(bytes));
        }
        print(() -> printText(opened, file != null, report), () -> object(opened, options, report));
      }
    }
    return ExitCode.OK;
  }

  final String address() {
    return address;
  }

  /** Whether it is an SSD in memory that nobody else has seen. */
  final boolean isOwn() {
    DeviceAddress device = StorageAddress.parse(address).device();
    return device != null && device.isEmbedded() && !device.has("file");
  }

  private Accelerator accelerator() {
    return switch (initiator.kind()) {
      case CPU -> CpuAccelerator.open();
      case GPU -> Accelerators.open("gpu").accelerator();
      case AUTO -> Accelerators.best().accelerator();
    };
  }

  /** What is compared is read by the CPU. */
  private StorageOptions storageOptions() {
    return StorageOptions.defaults()
        .with(limits.controller(updates() || isOwn()))
        .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST));
  }

  // ---- output

  /** With the flush at the end. */
  private double seconds(RowReport report) {
    return (report.medianNanos() + (double) report.flushNanos() / batches) / NANOS_PER_SECOND;
  }

  private void printText(StorageAddress opened, boolean throughEmbedded, RowReport report) {
    if (throughEmbedded) {
      out().println("read through an embedded SSD: " + opened);
    }
    double rate = batch / seconds(report);
    Table table =
        new Table(2)
            .row("rows", "%d of %s".formatted(report.rows(), Sizes.format(rowBytes)))
            .row("batch", "%d, %d times".formatted(batch, batches))
            .row("rows/s", "%.3f M".formatted(rate / 1e6))
            .row("GB/s", "%.2f".formatted(rate * rowBytes / 1e9))
            .row(
                "time of a batch",
                "%.3f ms (%.3f to %.3f)"
                    .formatted(
                        report.medianNanos() / 1e6,
                        report.minNanos() / 1e6,
                        report.maxNanos() / 1e6))
            .row("by", "%s, to %s".formatted(report.initiator(), report.accelerator()));
    if (updates()) {
      table.row("flush", "%.3f ms".formatted(report.flushNanos() / 1e6));
    }
    PageCacheCounters counters = report.counters();
    if (counters != null) {
      table
          .row("reads", counters.reads() + " of " + Sizes.format(pages.page()))
          .row("hit rate", "%.1f %%".formatted(100 * counters.hitRate()))
          .row("cache", Sizes.format(cache))
          .row("placement", pages.placement().toString());
    }
    table.row("verified", report.checkedRows() + " rows of the last batch");
    table.print(out());
  }

  private Map<String, Object> object(StorageAddress opened, RowOptions options, RowReport report) {
    double rate = batch / seconds(report);
    @Nullable PageCacheCounters counters = report.counters();
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("benchmark", benchmark());
    all.put("device", opened.toString());
    all.put("initiator", report.initiator());
    all.put("accelerator", report.accelerator());
    all.put("rows", report.rows());
    all.put("row_bytes", rowBytes);
    all.put("batch", batch);
    all.put("batches", batches);
    all.put("skew", skew);
    all.put("rows_per_second", rate);
    all.put("bytes_per_second", rate * rowBytes);
    all.put("batch_seconds", report.medianNanos() / NANOS_PER_SECOND);
    all.put("batch_seconds_min", report.minNanos() / NANOS_PER_SECOND);
    all.put("batch_seconds_max", report.maxNanos() / NANOS_PER_SECOND);
    all.put("flush_seconds", report.flushNanos() / NANOS_PER_SECOND);
    if (counters != null) {
      all.put("placement", options.placement().toString());
      all.put("cache_bytes", cache);
      all.put("page_bytes", pages.page());
      all.put("acquires", counters.acquires());
      all.put("hit_rate", counters.hitRate());
      all.put("reads", counters.reads());
      all.put("read_bytes", counters.reads() * pages.page());
      all.put("writes", counters.writes());
      all.put("read_failures", counters.readFailures());
      all.put("write_failures", counters.writeFailures());
    }
    all.put("verified_rows", report.checkedRows());
    return all;
  }
}
