package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.device.Transport;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.tools.example.Gather;
import io.gpunvme.tools.example.GatherOptions;
import io.gpunvme.tools.example.GatherReport;
import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code gpunvme gather}. */
@Command(
    name = "gather",
    description = {
      "Let a kernel decide what to read: an example, and a small benchmark.",
      "gather writes a table to an embedded SSD. Each GPU thread reads a row, and the row says"
          + " which",
      "row the thread reads next. The CPU walks through the same table and compares."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme gather",
      "  gpunvme gather --threads 16384 --hops 64 --placement vram-data --json"
    })
final class GatherCommand extends BaseCommand {
  private static final double NANOS_PER_SECOND = 1e9;

  @Option(names = "--rows", paramLabel = "N", description = "Rows of the table (16384).")
  private int rows = 16384;

  @Option(
      names = "--row-bytes",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Bytes of a row, whole blocks (4KiB).")
  private long rowBytes = 4096;

  @Option(names = "--threads", paramLabel = "N", description = "GPU threads (4096).")
  private int threads = 4096;

  @Option(names = "--hops", paramLabel = "N", description = "Rows each thread reads (32).")
  private int hops = 32;

  @Option(
      names = "--placement",
      paramLabel = "WHERE",
      converter = Converters.Where.class,
      description = "Place of queues and rows: host, vram-data or vram (host).")
  private Placement placement = Placement.HOST;

  @Option(
      names = "--device",
      paramLabel = "DEVICE",
      description = "The embedded SSD; gather chooses size, workers and latency=0 unless given.")
  private String device = Transport.SIM + ":";

  GatherCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    int bytes = (int) Math.min(rowBytes, Integer.MAX_VALUE);
    GatherOptions options = new GatherOptions(rows, bytes, threads, hops, placement, 1);
    DeviceAddress address = DeviceAddress.parse(device);
    if (address.option("size") == null && address.option("file") == null) {
      address = address.with("size", Long.toString((long) rows * rowBytes));
    }
    if (address.option("workers") == null) {
      int workers = Math.max(1, Runtime.getRuntime().availableProcessors() / 2);
      address = address.with("workers", Integer.toString(workers));
    }
    if (address.option("latency") == null) {
      address = address.with("latency", "0");
    }
    try (GpuAccelerator gpu = GpuAccelerator.open();
        Device ssd =
            Device.open(address, ControllerOptions.builder().allowWrite(true).build(), "")) {
      GatherReport report = Gather.run(options, ssd, gpu);
      print(() -> printText(report), () -> object(report));
    }
    return ExitCode.OK;
  }

  private void printText(GatherReport report) {
    double seconds = report.nanos() / NANOS_PER_SECOND;
    out()
        .printf(
            "%d threads on %s read %d rows of %s each, one after the other: %.2f M rows/s,"
                + " checked%n",
            threads,
            report.accelerator(),
            hops,
            Sizes.format(rowBytes),
            report.reads() / seconds / 1e6);
  }

  private Map<String, Object> object(GatherReport report) {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("verified", report.verified());
    object.put("accelerator", report.accelerator());
    object.put("initiator", "GPU");
    object.put("path", "direct");
    object.put("placement", placement.toString());
    object.put("rows", rows);
    object.put("row_bytes", rowBytes);
    object.put("threads", threads);
    object.put("hops", hops);
    object.put("reads", report.reads());
    object.put("bytes", report.bytes());
    object.put("seconds", report.nanos() / NANOS_PER_SECOND);
    return object;
  }
}
