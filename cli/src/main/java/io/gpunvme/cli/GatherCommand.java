package io.gpunvme.cli;

import io.gpunvme.base.ByteRange;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.device.Transport;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.BlockRun;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.tools.example.Gather;
import io.gpunvme.tools.example.GatherOptions;
import io.gpunvme.tools.example.GatherReport;
import io.gpunvme.tools.ssd.Ssds;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code gpunvme gather}. */
@Command(
    name = "gather",
    description = {
      "Let a kernel decide what to read: an example, and a small benchmark.",
      "Each GPU thread reads a row of a table on an SSD, and the row says which row the thread"
          + " reads",
      "next. Then the CPU reads the table, walks through it, and compares. The table is on an",
      "embedded SSD that gather fills; or it is the first bytes of SSDs of yours, whatever is"
          + " there:",
      "they are only read. With --initiator cpu, the CPU reads a row of every walk at a time."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme gather",
      "  gpunvme gather --threads 16384 --hops 64 --placement vram-data --json",
      "  gpunvme gather --device vfio:0000:01:00.0 --rows 1000000",
      "  gpunvme gather --device sysfs:0000:01:00.0,unsafe=true --depth 32",
      "  gpunvme gather --device sim:file=disk.img#1 --initiator cpu"
    })
final class GatherCommand extends BaseCommand {
  private static final double NANOS_PER_SECOND = 1e9;
  private static final int SPARE_ROWS = 8;

  @Option(names = "--rows", paramLabel = "N", description = "Rows of the table (16384).")
  private int rows = 16384;

  @Option(
      names = "--row-bytes",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Bytes of a row, whole blocks (4KiB).")
  private long rowBytes = 4096;

  @Option(names = "--threads", paramLabel = "N", description = "GPU threads, or walks (4096).")
  private int threads = 4096;

  @Option(names = "--hops", paramLabel = "N", description = "Rows each thread reads (32).")
  private int hops = 32;

  @Option(
      names = "--queues",
      paramLabel = "N",
      converter = Converters.Count.class,
      description = "I/O queue pairs of each SSD (4).")
  private int queues;

  @Option(
      names = "--depth",
      paramLabel = "N",
      converter = Converters.Count.class,
      description =
          "Commands in flight per queue pair (256, or 16 for the CPU). A GPU's are a multiple of"
              + " 32; without an IOMMU 32 fit.")
  private int depth;

  @Option(
      names = "--placement",
      paramLabel = "WHERE",
      converter = Converters.Where.class,
      description = "Place of queues and rows: host, vram-data or vram (host).")
  private Placement placement = Placement.HOST;

  @Option(
      names = "--device",
      paramLabel = "ADDRESS",
      description =
          "SSDs of yours: vfio:, kmod:, sysfs:, vfio-user:, sim:file=…, stripe:…, replica:…, a"
              + " partition or a file on one of them. Or sim: without a file: gather chooses size,"
              + " workers and latency=0 unless given, and fills it (sim:).")
  private String device = Transport.SIM + ":";

  @Option(
      names = "--nsid",
      paramLabel = "N",
      converter = Converters.Nsid.class,
      description = "The namespace of each SSD (1).")
  private int nsid = 1;

  @Mixin private final InitiatorOption initiator = new InitiatorOption();

  @Mixin private final DriverOptions driver = new DriverOptions();

  GatherCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    int bytes = (int) Math.min(rowBytes, Integer.MAX_VALUE);
    GatherOptions options = new GatherOptions(rows, bytes, threads, hops, 1);
    DeviceAddress own = ownSsd();
    InitiatorOptions who =
        InitiatorOptions.defaults().with(queues, depth, 0).with(initiator.kind(), placement);
    try (Accelerator accelerator = who.accelerator().accelerator();
        Ssds ssds =
            Ssds.open(
                own == null ? device : own.toString(),
                driver.controller(own != null),
                driver.faults(),
                nsid)) {
      List<BlockRun> table = ssds.blocks(table(ssds.size()));
      if (own != null) {
        Gather.fill(options, table);
      }
      GatherReport report = Gather.run(options, table, accelerator, who);
      print(() -> printText(report), () -> object(report));
    }
    return ExitCode.OK;
  }

  /** The bytes of the table, and some more: rows begin at multiples of their length. */
  private ByteRange table(long size) {
    long bytes = rows * rowBytes;
    if (bytes > size) {
      throw new UsageException(
          "%d rows of %s need %s, and %s has %s: at most --rows %d"
              .formatted(
                  rows,
                  Sizes.format(rowBytes),
                  Sizes.format(bytes),
                  device,
                  Sizes.format(size),
                  size / rowBytes));
    }
    return new ByteRange(0, Math.min(size, bytes + SPARE_ROWS * rowBytes));
  }

  /** An SSD in memory that nobody else has seen; null: it is somebody's. */
  private @Nullable DeviceAddress ownSsd() {
    DeviceAddress address = StorageAddress.parse(device).device();
    if (address == null || !address.isEmbedded() || address.has("file")) {
      return null;
    }
    if (!address.has("size")) {
      address = address.with("size", Long.toString((long) rows * rowBytes));
    }
    if (!address.has("workers")) {
      int workers = Math.max(1, Runtime.getRuntime().availableProcessors() / 2);
      address = address.with("workers", Integer.toString(workers));
    }
    return address.has("latency") ? address : address.with("latency", "0");
  }

  private void printText(GatherReport report) {
    double seconds = report.nanos() / NANOS_PER_SECOND;
    out()
        .printf(
            "%d %s to %s read %d rows of %s each, one after the other: %.2f M rows/s,"
                + " checked%n",
            threads,
            report.initiator().equals("GPU") ? "GPU threads" : "walks of the CPU",
            report.accelerator(),
            hops,
            Sizes.format(rowBytes),
            report.reads() / seconds / 1e6);
  }

  private Map<String, Object> object(GatherReport report) {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("verified", report.verified());
    object.put("accelerator", report.accelerator());
    object.put("initiator", report.initiator());
    object.put("path", "direct");
    object.put("placement", report.placement().toString());
    object.put("queue_pairs", report.queuePairs());
    object.put("depth", report.depth());
    object.put("device", device);
    object.put("ssds", report.ssds());
    object.put("rows", rows);
    object.put("row_bytes", rowBytes);
    object.put("threads", threads);
    object.put("hops", hops);
    object.put("reads", report.reads());
    object.put("bytes", report.bytes());
    object.put("retries", report.retries());
    object.put("seconds", report.nanos() / NANOS_PER_SECOND);
    return object;
  }
}
