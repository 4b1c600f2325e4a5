package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.tools.ssd.BlockMover;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.ArgGroup;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code gpunvme read DEVICE}. */
@Command(
    name = "read",
    description = "Read logical blocks into a file.",
    footer = {
      "",
      "Examples:",
      "  gpunvme read sim:file=disk.img --lba 0 --bytes 1MiB --out copy.bin",
      "  gpunvme read sim:file=disk.img --lba 0 --blocks 1 --out - | xxd | head"
    })
final class ReadCommand extends DeviceCommand {
  private static final String STANDARD_OUTPUT = "-";

  /** The amount, in blocks or in bytes. */
  private static final class Amount {
    @Option(
        names = "--blocks",
        paramLabel = "N",
        required = true,
        converter = Converters.Whole.class,
        description = "Number of blocks.")
    private @Nullable Long blocks;

    @Option(
        names = "--bytes",
        paramLabel = "SIZE",
        required = true,
        converter = Converters.Size.class,
        description = "Number of bytes, e.g. 1MiB; the last block may be read in part.")
    private @Nullable Long bytes;

    long bytes(int blockSize) {
      Long count = blocks;
      if (count == null) {
        return bytes == null ? 0 : bytes;
      }
      if (count > Long.MAX_VALUE / blockSize) {
        throw new UsageException("--blocks " + count + " is more than any device has");
      }
      return count * blockSize;
    }
  }

  @Option(
      names = "--nsid",
      paramLabel = "N",
      converter = Converters.Nsid.class,
      description = "The namespace (1).")
  private int nsid = 1;

  @Option(
      names = "--lba",
      paramLabel = "LBA",
      required = true,
      converter = Converters.Whole.class,
      description = "First logical block.")
  private long lba;

  @ArgGroup(multiplicity = "1")
  private final Amount amount = new Amount();

  @Option(
      names = "--out",
      paramLabel = "FILE",
      required = true,
      description = "File for the data; - is standard output.")
  private String file = "";

  @Option(
      names = "--verify-sha",
      description = "Read everything twice and compare the SHA-256 checksums.")
  private boolean twice;

  @Option(
      names = "--sha256",
      paramLabel = "HEX",
      converter = Converters.Sha256.class,
      description = "Fail, and leave no file, unless this is the data's SHA-256.")
  private @Nullable String expected;

  @Mixin private final TransferOptions transfer = new TransferOptions();

  ReadCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    boolean standard = file.equals(STANDARD_OUTPUT);
    if (standard && json()) {
      throw new UsageException("--out - and --json both write to standard output; leave out one");
    }
    try (Device device = open()) {
      NvmeController controller = device.controller();
      Namespace namespace = controller.namespace(nsid);
      long bytes = amount.bytes(namespace.blockSize());
      TransferOptions.blocks(namespace, lba, bytes);
      try (Progress progress = Progress.on(streams());
          CpuAccelerator host = CpuAccelerator.open();
          BlockMover copy = transfer.mover(controller, namespace, host, bytes, progress::moved)) {
        progress.begin("read", bytes);
        return standard ? toStandardOutput(copy, bytes) : toFile(copy, bytes, progress);
      }
    }
  }

  private int toStandardOutput(BlockMover copy, long bytes) throws IOException {
    String sha256;
    try (OutputStream stream = new CheckedOutput(out())) {
      sha256 = copy.read(lba, bytes, stream);
    }
    String problem = check(copy, bytes, sha256);
    finish(copy.report(), bytes, sha256, problem, streams().err());
    return problem == null ? ExitCode.OK : ExitCode.FAILURE;
  }

  private int toFile(BlockMover copy, long bytes, Progress progress) throws IOException {
    try (OutputFile output = OutputFile.create(Path.of(file))) {
      String sha256;
      try (OutputStream stream = output.stream()) {
        sha256 = copy.read(lba, bytes, stream);
      }
      TransferReport report = copy.report();
      String problem = check(copy, bytes, sha256);
      progress.close();
      if (problem == null) {
        output.commit();
      }
      finish(report, bytes, sha256, problem, out());
      return problem == null ? ExitCode.OK : ExitCode.FAILURE;
    }
  }

  /** The message about wrong data; null if the data is right. */
  private @Nullable String check(BlockMover copy, long bytes, String sha256) throws IOException {
    String wanted = expected;
    if (wanted != null && !wanted.equals(sha256)) {
      return "SHA-256 is " + sha256 + ", expected " + wanted;
    }
    if (twice) {
      String again = copy.read(lba, bytes, OutputStream.nullOutputStream());
      if (!again.equals(sha256)) {
        return "read twice, SHA-256 is " + sha256 + " and then " + again;
      }
    }
    return null;
  }

  private void finish(
      TransferReport report,
      long bytes,
      String sha256,
      @Nullable String problem,
      PrintStream text) {
    if (problem != null) {
      streams().err().println("gpunvme read: " + problem);
    }
    print(
        () -> {
          if (problem == null) {
            text.printf(
                "%s read from LBA %d in %d commands, %.2f GB/s%nSHA-256 %s%n",
                Sizes.format(bytes), lba, report.commands(), report.gigabytesPerSecond(), sha256);
          }
        },
        () -> object(report, bytes, sha256, problem));
  }

  private Map<String, Object> object(
      TransferReport report, long bytes, String sha256, @Nullable String problem) {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("device", device());
    object.put("nsid", Integer.toUnsignedLong(nsid));
    object.put("lba", lba);
    object.put("bytes", bytes);
    object.put("out", problem == null ? file : null);
    object.put("sha256", sha256);
    boolean checked = twice || expected != null;
    object.put("verified", checked ? problem == null : null);
    object.putAll(Descriptions.transfer(report));
    return object;
  }
}
