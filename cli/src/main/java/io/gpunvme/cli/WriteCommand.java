package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Progress;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.tools.ssd.BlockMover;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** {@code gpunvme write DEVICE}. */
@Command(
    name = "write",
    description = {
      "Write a file to logical blocks and flush the controller's cache.",
      "The rest of the last block stays as it is."
    },
    footer = {
      "",
      "Example:",
      "  gpunvme write sim:file=disk.img,size=64MiB --lba 0 --in data.bin --allow-write"
    })
final class WriteCommand extends DeviceCommand {
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

  @Option(names = "--in", paramLabel = "FILE", required = true, description = "The data.")
  private Path file = Path.of("");

  @Option(
      names = "--allow-write",
      description = "Required, because write overwrites data on the device.")
  private boolean allowWrite;

  @Mixin private final TransferOptions transfer = new TransferOptions();

  WriteCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    if (!allowWrite) {
      throw new UsageException(
          "write overwrites data on the device; add --allow-write to allow it");
    }
    if (!Files.exists(file)) {
      throw new NoSuchFileException(file.toString());
    }
    if (!Files.isRegularFile(file)) {
      throw new UsageException(file + " is not a regular file");
    }
    long bytes = Files.size(file);
    try (Device device = open(true)) {
      NvmeController controller = device.controller();
      Namespace namespace = controller.namespace(nsid);
      long blocks = TransferOptions.blocks(namespace, lba, bytes);
      String sha256;
      TransferReport report;
      try (Progress progress = Progress.on(streams());
          InputStream in = Files.newInputStream(file);
          CpuAccelerator host = CpuAccelerator.open();
          BlockMover copy = transfer.mover(controller, namespace, host, bytes, progress::moved)) {
        progress.begin("write", bytes);
        Ending.leaves(
            "of the blocks from LBA %d to %d some are written, some are not"
                .formatted(lba, lba + blocks - 1));
        sha256 = copy.write(in, lba, bytes, true);
        report = copy.report();
      }
      try (BlockDevice cache = BlockDevice.open(controller, namespace, 1)) {
        cache.flush();
      }
      Ending.leaves("everything is written");
      print(
          () ->
              out()
                  .printf(
                      "%s written to LBA %d in %d commands, %.2f GB/s, and flushed%nSHA-256 %s%n",
                      Sizes.format(bytes),
                      lba,
                      report.commands(),
                      report.gigabytesPerSecond(),
                      sha256),
          () -> object(report, bytes, blocks, sha256));
    }
    return ExitCode.OK;
  }

  private Map<String, Object> object(
      TransferReport report, long bytes, long blocks, String sha256) {
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("device", device());
    object.put("nsid", Integer.toUnsignedLong(nsid));
    object.put("lba", lba);
    object.put("blocks", blocks);
    object.put("bytes", bytes);
    object.put("in", file.toString());
    object.put("sha256", sha256);
    object.put("flushed", true);
    object.putAll(Descriptions.transfer(report));
    return object;
  }
}
