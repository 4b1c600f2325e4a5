package io.gpunvme.cli;

import io.gpunvme.base.ByteRange;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.gpu.device.DeviceAddress;
import io.gpunvme.gpu.device.Transport;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.tools.demo.Demo;
import io.gpunvme.tools.demo.DemoListener;
import io.gpunvme.tools.demo.DemoOptions;
import io.gpunvme.tools.demo.DemoReport;
import io.gpunvme.tools.demo.RangeDemo;
import io.gpunvme.tools.demo.RangeReport;
import io.gpunvme.tools.ssd.Ssds;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** {@code gpunvme demo [FILE]}. */
@Command(
    name = "demo",
    description = {
      "Move a file through NVMe commands into accelerator memory and check it.",
      "demo writes the file to an embedded SSD and reads it back over several queue pairs, with",
      "pipelined commands as long as the SSD allows. The SHA-256 of the data that arrives must be"
          + " the",
      "file's.",
      "On SSDs of yours it only reads: into accelerator memory, and once more by the CPU; both must"
          + " be",
      "the same. With --write it puts the file where you say, and puts back what was there."
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme demo",
      "  gpunvme demo model.safetensors --queues 8 --depth 64",
      "  gpunvme demo --initiator gpu --placement vram --size 1GiB",
      "  gpunvme demo --device sim:lba=4096,mdts=128KiB,latency=20us --json",
      "  gpunvme demo --device vfio:0000:01:00.0 --read 1GiB+512MiB",
      "  gpunvme demo --device stripe:vfio:0000:01:00.0,vfio:0000:02:00.0",
      "  gpunvme demo --device vfio:0000:01:00.0 --write 1GiB+256MiB --allow-write",
      "  gpunvme demo --device vfio:0000:01:00.0#1:/models/a.gguf --write 256MiB --allow-write",
      "  gpunvme demo --device vfio-user:/tmp/ssd.sock --json",
      "  gpunvme demo --faults 'status=generic/namespace-not-ready on read p=0.01'"
    })
final class DemoCommand extends BaseCommand {
  private static final double NANOS_PER_SECOND = 1e9;
  private static final double MICROS_PER_MILLI = 1000;

  @Parameters(
      index = "0",
      arity = "0..1",
      paramLabel = "FILE",
      description = "The file; without it, demo makes a safetensors file with several dtypes.")
  private @Nullable Path file;

  @Option(
      names = "--size",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Size of the file that demo makes (256MiB).")
  private @Nullable Long size;

  @Option(
      names = "--device",
      paramLabel = "ADDRESS",
      description = {
        "The embedded SSD; demo chooses size and file unless given.",
        "Or SSDs of yours: vfio:, kmod:, sysfs:, vfio-user:, sim: with --read or --write, "
            + "stripe:…, replica:… (only to be read), a partition or a file on one of them."
      })
  private String device = Transport.SIM + ":";

  @Option(
      names = "--read",
      paramLabel = "RANGE",
      converter = Converters.Range.class,
      description = {
        "Only read these bytes of the namespace, set, partition or file, OFFSET+SIZE or SIZE, and "
            + "compare with the CPU.",
        "Default on SSDs of yours: the first 256 MiB."
      })
  private @Nullable ByteRange read;

  @Option(
      names = "--write",
      paramLabel = "RANGE",
      converter = Converters.Range.class,
      description =
          "Put the file into these bytes of the namespace, set, partition or file. What was there"
              + " is kept in a file meanwhile, and put back, also after Ctrl-C. Needs"
              + " --allow-write.")
  private @Nullable ByteRange write;

  @Option(
      names = "--nsid",
      paramLabel = "N",
      converter = Converters.Nsid.class,
      description = "The namespace of an SSD of yours, or of each SSD (1).")
  private int nsid = 1;

  @Option(names = "--allow-write", description = "Allow --write to overwrite data of an SSD.")
  private boolean allowWrite;

  @Option(names = "--keep", description = "Keep the file that demo made and the SSD's image.")
  private boolean keep;

  @Option(
      names = "--placement",
      paramLabel = "WHERE",
      converter = Converters.Where.class,
      description = {
        "Place of queues and data: host, vram-data (data in GPU memory), or vram (both; GPU only).",
        "Default: vram-data if the SSD reaches GPU memory, else host."
      })
  private @Nullable Placement placement;

  /** The process is told to end. */
  private volatile boolean cancelled;

  @Mixin private final InitiatorOption initiator = new InitiatorOption();

  @Mixin private final TransferOptions transfer = new TransferOptions();

  @Mixin private final DriverOptions driver = new DriverOptions();

  DemoCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    DeviceAddress address = StorageAddress.parse(device).device();
    requireSense(address);
    if (onlyReads(address)) {
      return read();
    }
    ByteRange range = write;
    if (range != null) {
      return Borrowing.run(
          "demo", device, range, () -> cancelled = true, folder -> moveTo(range, folder));
    }
    return move(Objects.requireNonNull(address));
  }

  /** Whether the SSD is somebody's and nothing is written to it. */
  private boolean onlyReads(@Nullable DeviceAddress address) {
    return read != null || (address == null || !address.isEmbedded()) && write == null;
  }

  private void requireSense(@Nullable DeviceAddress address) {
    if (file != null && size != null) {
      throw new UsageException("--size is for the file that demo makes; leave it out with a FILE");
    }
    if (read != null && write != null) {
      throw new UsageException("--read writes nothing: leave out --write, or --read");
    }
    if (write != null && !allowWrite) {
      throw new UsageException(
          "--write overwrites %s of %s for a while; add --allow-write to allow it"
              .formatted(write, device));
    }
    if (!onlyReads(address)) {
      if (nsid != 1 && write == null) {
        throw new UsageException("--nsid is for an SSD of yours, with --read or --write");
      }
      return;
    }
    if (allowWrite) {
      throw new UsageException(
          "--allow-write is for --write OFFSET+SIZE, which says what of %s may be overwritten"
              .formatted(device));
    }
    if (file != null || size != null || keep) {
      throw new UsageException(
          "demo only reads %s; a FILE, --size and --keep".formatted(device)
              + " need --write OFFSET+SIZE and --allow-write");
    }
  }

  // ---- what is there

  private int read() throws IOException {
    RangeReport report;
    try (Ssds ssds = Ssds.open(device, driver.controller(false), driver.faults(), nsid);
        Progress progress = Progress.on(streams())) {
      InitiatorOptions options = transfer.initiator().with(initiator.kind(), placement);
      report = RangeDemo.run(ssds, read, options, listener(progress));
    }
    print(() -> printText(report), () -> object(report));
    RangeReport.Difference difference = report.difference();
    if (difference != null) {
      streams()
          .err()
          .println(
              "gpunvme demo: %s and the CPU read different data, first in the MiB from LBA %d of %s"
                  .formatted(report.get().initiator(), difference.lba(), difference.ssd()));
    }
    return report.verified() ? ExitCode.OK : ExitCode.FAILURE;
  }

  private void printText(RangeReport r) {
    out()
        .println(
            "%s from byte %d of %s, to %s"
                .formatted(Sizes.format(r.bytes()), r.offset(), r.model(), r.accelerator()));
    out().println();
    rows("SSD to accelerator", r.get(), "SSD to host", r.byCpu())
        .row("bytes", r.bytes(), r.bytes())
        .print(out());
    out().println();
    out().println("SSD    " + r.device() + ", nothing was written");
    out().println("       to " + r.accelerator() + ": " + r.acceleratorReason());
    out()
        .println(
            r.verified()
                ? "check  both read the same, SHA-256 " + r.arrivedSha256()
                : "check  FAILED: SHA-256 is "
                    + r.arrivedSha256()
                    + ", by the CPU "
                    + r.cpuSha256());
  }

  private Map<String, Object> object(RangeReport r) {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("verified", r.verified());
    object.put("device", r.device());
    object.put("model", r.model());
    object.put("ssds", r.ssds());
    object.put("offset", r.offset());
    object.put("bytes", r.bytes());
    object.put("sha256", r.arrivedSha256());
    object.put("cpu_sha256", r.cpuSha256());
    RangeReport.Difference difference = r.difference();
    object.put(
        "differs_at",
        difference == null ? null : Map.of("device", difference.ssd(), "lba", difference.lba()));
    object.put("block_size", r.blockSize());
    object.put("max_transfer_bytes", r.maxTransferBytes());
    object.put("accelerator", r.accelerator());
    object.put("accelerator_reason", r.acceleratorReason());
    object.put("buffer_bytes", r.bufferBytes());
    object.putAll(Descriptions.transfer(r.get()));
    object.put("cpu", Descriptions.transfer(r.byCpu()));
    return object;
  }

  // ---- a file

  /** On somebody's SSDs. */
  private int moveTo(ByteRange range, Path folder) throws IOException {
    DemoReport report;
    try (Ssds ssds = Ssds.open(device, driver.controller(true), driver.faults(), nsid);
        Progress progress = Progress.on(streams())) {
      long most = Math.min(Ssds.bytes(ssds.blocksToWrite(range)), DemoOptions.SAMPLE_BYTES);
      report = Demo.run(ssds, range, options(folder, most), listener(progress));
    }
    if (keep) {
      Leftovers.keep(folder);
    }
    return tell(report);
  }

  /** On an SSD that is made for it. */
  private int move(DeviceAddress address) throws IOException {
    String rules = driver.faults();
    Path folder = Leftovers.add(Files.createTempDirectory("gpunvme-demo-"));
    Path image = newImage(address);
    boolean done = false;
    try {
      DemoReport report;
      try (Progress progress = Progress.on(streams())) {
        report =
            Demo.run(
                options(folder, DemoOptions.SAMPLE_BYTES)
                    .withDevice(kept(address, folder), rules)
                    .withController(driver.controller(true)),
                listener(progress));
      }
      int code = tell(report);
      done = true;
      return code;
    } finally {
      leave(folder, done && keep);
      if (image != null) {
        leave(image, done);
      }
    }
  }

  private int tell(DemoReport report) {
    print(() -> printText(report), () -> object(report));
    if (!report.verified()) {
      streams().err().println("gpunvme demo: the data that arrived is not the data that was sent");
    }
    return report.verified() ? ExitCode.OK : ExitCode.FAILURE;
  }

  /** The image that the demo will make, and delete unless it becomes whole. */
  private static @Nullable Path newImage(DeviceAddress address) {
    String name = address.option("file");
    return name == null || Files.exists(Path.of(name)) ? null : Leftovers.add(Path.of(name));
  }

  private static void leave(Path path, boolean kept) {
    if (kept) {
      Leftovers.keep(path);
    } else {
      Leftovers.delete(path);
    }
  }

  /**
   * For both.
   *
   * @param sample bytes of the file that demo makes, unless another size is given
   */
  private DemoOptions options(Path folder, long sample) {
    DemoOptions options =
        DemoOptions.in(folder)
            .withInitiator(transfer.initiator().with(initiator.kind(), placement));
    Path given = file;
    return given == null
        ? options.withSample(size == null ? sample : size)
        : options.withFile(given);
  }

  /** An image to keep is a file, even if memory would do. */
  private DeviceAddress kept(DeviceAddress address, Path folder) {
    return keep && address.isEmbedded() && !address.has("file") && !address.has("media")
        ? address.with("file", folder.resolve("ssd.img").toString())
        : address;
  }

  private DemoListener listener(Progress progress) {
    return new ShownDemo(progress, () -> cancelled);
  }

  // ---- text

  private void printText(DemoReport r) {
    String name = r.sample() ? "generated safetensors file" : r.file().toString();
    out().println(name + ", " + Sizes.format(r.bytes()) + ", to " + r.accelerator());
    out().println();
    TransferReport get = r.get();
    TransferReport put = r.put();
    rows("SSD to accelerator", get, "file to SSD", put)
        .row("of them by the CPU", known(r.getByCpu()), known(r.putByCpu()))
        .row("bytes", r.bytes(), r.bytes())
        .print(out());
    out().println();
    out().println("SSD    " + device(r) + (deleted(r) ? ", image deleted (--keep keeps it)" : ""));
    if (r.pinned()) {
      out().println("       its memory is pinned, so that the GPU copies from and to it directly");
    }
    out().println("       to " + r.accelerator() + ": " + r.acceleratorReason());
    if (r.range() != null) {
      out().println("       what was in " + r.range() + " is there again");
    }
    out()
        .println(
            r.verified()
                ? "check  SHA-256 of the data that arrived equals the file's: " + r.arrivedSha256()
                : "check  FAILED: SHA-256 is " + r.arrivedSha256() + ", not " + r.sourceSha256());
    if (keep) {
      out().println("kept   " + kept(r));
    }
  }

  private static Table rows(String one, TransferReport a, String other, TransferReport b) {
    return new Table(0)
        .row("", one, other)
        .row("path", a.path(), b.path())
        .row("initiator", a.initiator(), b.initiator())
        .row("placement", a.placement(), b.placement())
        .row("queue pairs", a.queuePairs(), b.queuePairs())
        .row("depth", a.depth(), b.depth())
        .row("threads", a.threads(), b.threads())
        .row("GB/s", rate(a), rate(b))
        .row("latency p50", latency(a, Descriptions.MEDIAN), latency(b, Descriptions.MEDIAN))
        .row("latency p99", latency(a, Descriptions.TAIL), latency(b, Descriptions.TAIL))
        .row("doorbell writes", a.sqDoorbells(), b.sqDoorbells())
        .row("commands per doorbell", perDoorbell(a), perDoorbell(b))
        .row("completion doorbells", a.cqDoorbells(), b.cqDoorbells())
        .row("commands", commands(a), commands(b));
  }

  /** Whether the image was in our folder, which is deleted. */
  private boolean deleted(DemoReport r) {
    return !keep && r.image() != null && !DeviceAddress.parse(device).has("file");
  }

  /** The SSD's address, without an image that is deleted. */
  private String device(DemoReport r) {
    return deleted(r) ? DeviceAddress.parse(r.device()).without("file").toString() : r.device();
  }

  private static String commands(TransferReport report) {
    return report.retries() == 0
        ? Long.toString(report.commands())
        : "%d, %d of them repeated".formatted(report.commands(), report.retries());
  }

  /** An SSD in another process does not say who rings its doorbells. */
  private static String known(OptionalLong count) {
    return count.isPresent() ? Long.toString(count.getAsLong()) : "not counted";
  }

  private static @Nullable Long orNull(OptionalLong count) {
    return count.isPresent() ? count.getAsLong() : null;
  }

  private static String perDoorbell(TransferReport report) {
    return String.format(Locale.ROOT, "%.1f", Descriptions.perDoorbell(report));
  }

  private static String rate(TransferReport report) {
    return String.format(Locale.ROOT, "%.2f", report.gigabytesPerSecond());
  }

  private static String latency(TransferReport report, int percentile) {
    double micros = Descriptions.micros(report, percentile);
    return micros < MICROS_PER_MILLI
        ? String.format(Locale.ROOT, "%.0f us", micros)
        : String.format(Locale.ROOT, "%.1f ms", micros / MICROS_PER_MILLI);
  }

  private static @Nullable Path kept(DemoReport r) {
    return r.sample() ? r.file().getParent() : r.image();
  }

  // ---- JSON

  private Map<String, Object> object(DemoReport r) {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("verified", r.verified());
    object.put("file", r.sample() && !keep ? null : r.file().toString());
    object.put("generated", r.sample());
    object.put("bytes", r.bytes());
    object.put("sha256", r.arrivedSha256());
    object.put("source_sha256", r.sourceSha256());
    object.put("device", device(r));
    ByteRange range = r.range();
    object.put("offset", range == null ? null : range.offset());
    object.put("restored", range == null ? null : true);
    object.put("model", r.model());
    object.put("ssds", r.ssds());
    object.put("block_size", r.blockSize());
    object.put("max_transfer_bytes", r.maxTransferBytes());
    object.put("accelerator", r.accelerator());
    object.put("accelerator_reason", r.acceleratorReason());
    object.put("media_pinned", r.pinned());
    object.put("commands_by_cpu", orNull(r.getByCpu()));
    object.put("buffer_bytes", r.bufferBytes());
    object.putAll(Descriptions.transfer(r.get()));
    Map<String, Object> write = Descriptions.transfer(r.put());
    write.put("bytes", r.bytes());
    write.put("commands_by_cpu", orNull(r.putByCpu()));
    write.put("flush_us", r.flushNanos() / MICROS_PER_MILLI);
    object.put("write", write);
    object.put("total_seconds", r.nanos() / NANOS_PER_SECOND);
    Path image = r.image();
    object.put("image", keep && image != null ? image.toString() : null);
    return object;
  }
}
