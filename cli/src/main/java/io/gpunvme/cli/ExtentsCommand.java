package io.gpunvme.cli;

import io.gpunvme.base.Printable;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Sizes;
import io.gpunvme.cli.output.Table;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.Volume;
import io.gpunvme.storage.fs.FiemapExtents;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.fs.FileExtent;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import picocli.CommandLine.Command;

/** {@code gpunvme extents ADDRESS}. */
@Command(
    name = "extents",
    description = {
      "Show where on its device a file is: the blocks that the GPU would read.",
      "If ADDRESS is the name of a file in a mounted file system, the kernel answers (FIEMAP).",
    },
    footer = {
      "",
      "Examples:",
      "  gpunvme extents vfio:0000:01:00.0#1:/models/model.gguf",
      "  gpunvme extents disk.img:/a.bin --json",
      "  gpunvme extents /models/model.gguf"
    })
final class ExtentsCommand extends FileCommand {
  private static final int SECTOR = 512;

  ExtentsCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    FileAddress wanted = address();
    StorageAddress device = Volume.device(wanted);
    Path file = device.file();
    if (file == null || wanted.explicit() || wanted.partition() > 0) {
      return super.run();
    }
    List<FileExtent> extents = FiemapExtents.of(file);
    String store = Files.getFileStore(file).name();
    String how = "FIEMAP: the kernel's " + Files.getFileStore(file).type() + " on " + store;
    Map<String, Object> object = new LinkedHashMap<>();
    object.put("address", file.toString());
    object.put("device", store);
    object.put("lba_bytes", SECTOR);
    object.put("read_by", how);
    show(file.toString(), how, extents, SECTOR, object);
    return ExitCode.OK;
  }

  @Override
  int run(Volume volume, FileAddress wanted) {
    List<FileExtent> extents = volume.find(wanted.path()).extents();
    show(wanted.toString(), volume.how(), extents, volume.blockBytes(), volume(volume, wanted));
    return ExitCode.OK;
  }

  private void show(
      String name, String how, List<FileExtent> extents, int lba, Map<String, Object> object) {
    long bytes = extents.isEmpty() ? 0 : extents.getLast().end();
    print(
        () -> {
          out()
              .printf(
                  "%s, %s in %d %s%n(%s)%n",
                  Printable.of(name),
                  Sizes.format(bytes),
                  extents.size(),
                  extents.size() == 1 ? "extent" : "extents",
                  how);
          Table table =
              new Table(0).row("FILE OFFSET", "LENGTH", "DEVICE OFFSET", "LBA (" + lba + ")");
          for (FileExtent e : extents) {
            table.row(
                e.fileOffset(),
                e.length(),
                e.isZeros() ? "zeros" : e.deviceOffset(),
                e.isZeros() ? "-" : lba(e.deviceOffset(), lba));
          }
          table.print(out());
        },
        () -> {
          object.put("bytes", bytes);
          object.put("extents", extents.stream().map(e -> json(e, lba)).toList());
          return object;
        });
  }

  /** The logical block, and the byte in it unless that is the first. */
  private static String lba(long offset, int bytes) {
    return offset / bytes + (offset % bytes == 0 ? "" : "+" + offset % bytes);
  }

  private static Map<String, Object> json(FileExtent e, int lba) {
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("file_offset", e.fileOffset());
    one.put("length", e.length());
    one.put("zeros", e.isZeros());
    one.put("device_offset", e.isZeros() ? null : e.deviceOffset());
    one.put("lba", e.isZeros() ? null : e.deviceOffset() / lba);
    one.put("byte_in_lba", e.isZeros() ? null : e.deviceOffset() % lba);
    return one;
  }
}
