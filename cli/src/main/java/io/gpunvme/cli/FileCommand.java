package io.gpunvme.cli;

import io.gpunvme.base.Printable;
import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.Volume;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystem;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/** A subcommand about a file or folder on a device, found without the kernel's file systems. */
abstract class FileCommand extends BaseCommand {
  /** What to do with a journal that has changes which are not in the file system yet. */
  enum Journal {
    REFUSE,
    IGNORE;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  @Parameters(
      index = "0",
      paramLabel = "ADDRESS",
      description =
          "DEVICE[#PARTITION]:/PATH; DEVICE is sim:…, vfio:DDDD:BB:DD.F, kmod:… or an image file"
              + " (see docs/file-systems.md).")
  private String address = "";

  @Option(
      names = "--nsid",
      paramLabel = "N",
      converter = Converters.Nsid.class,
      description = "The namespace of a controller (1).")
  private int nsid = 1;

  @Option(
      names = "--journal",
      paramLabel = "WHAT",
      description =
          "For ext4 that was not unmounted. refuse: fail; ignore: read it without the changes that"
              + " are only in its journal (refuse).")
  private Journal journal = Journal.REFUSE;

  @Mixin private final AcceleratorOption accelerator = new AcceleratorOption();

  FileCommand(OutputStreams streams) {
    super(streams);
  }

  /** Does the work on an open volume. */
  abstract int run(Volume volume, FileAddress wanted) throws IOException;

  /** The address as it was given. */
  final FileAddress address() {
    return FileAddress.parse(address);
  }

  @Override
  int run() throws IOException {
    FileAddress wanted = address();
    Path image = Volume.device(wanted).file();
    if (image != null && !Files.exists(image)) {
      throw new NoSuchFileException(image.toString());
    }
    StorageOptions options = StorageOptions.defaults().withNamespace(nsid);
    try (LateAccelerator late = new LateAccelerator(accelerator);
        Volume volume = Volume.open(wanted, late::get, options, journal == Journal.IGNORE)) {
      volume.notes().forEach(note -> streams().err().println("note: " + Printable.of(note)));
      return run(volume, wanted);
    }
  }

  /** An accelerator that is opened at its first use: an image file needs none. */
  private static final class LateAccelerator implements AutoCloseable {
    private final AcceleratorOption option;
    private @Nullable Accelerator opened;

    LateAccelerator(AcceleratorOption option) {
      this.option = option;
    }

    Accelerator get() {
      Accelerator there = opened;
      if (there == null) {
        there = option.open().accelerator();
        opened = there;
      }
      return there;
    }

    @Override
    public void close() {
      Accelerator there = opened;
      if (there != null) {
        there.close();
      }
    }
  }

  // ---- output that several of these commands share

  /** Where the file system is and how it is read. */
  static Map<String, Object> volume(Volume volume, FileAddress wanted) {
    FileSystem fs = volume.fileSystem();
    Map<String, Object> one = new LinkedHashMap<>();
    one.put("address", wanted.toString());
    one.put("file_system", fs.type());
    one.put("label", fs.label());
    one.put("allocation_bytes", fs.blockSize());
    var partition = volume.partition();
    one.put("partition", partition == null ? null : partition.number());
    one.put("partition_offset", partition == null ? null : partition.firstByte());
    one.put("lba_bytes", volume.blockBytes());
    one.put("read_by", volume.how());
    one.put("notes", volume.notes());
    return one;
  }

  static String kind(FileNode.Kind kind) {
    return kind.name().toLowerCase(Locale.ROOT);
  }

  /** The path of a name in a folder. */
  static String below(String folder, String name) {
    return folder.endsWith("/") ? folder + name : folder + "/" + name;
  }
}
