package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.storage.Volume;
import io.gpunvme.storage.fs.FileAddress;
import io.gpunvme.storage.fs.FileNode;
import io.gpunvme.storage.fs.FileSystemException;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;

/** {@code gpunvme cat ADDRESS}. */
@Command(
    name = "cat",
    description = "Read a file on a device without the kernel, and write it to standard output.",
    footer = {
      "",
      "Examples:",
      "  gpunvme cat disk.img:/models/a.gguf > a.gguf",
      "  gpunvme cat vfio:0000:01:00.0:/a.safetensors --length 8 | xxd"
    })
final class CatCommand extends FileCommand {
  private static final int PIECE = 4 << 20;

  @Option(
      names = "--offset",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "First byte, e.g. 1MiB (0).")
  private long offset;

  @Option(
      names = "--length",
      paramLabel = "SIZE",
      converter = Converters.Size.class,
      description = "Number of bytes (all to the end of the file).")
  private @Nullable Long length;

  CatCommand(OutputStreams streams) {
    super(streams);
  }

  @Override
  int run() throws IOException {
    if (json()) {
      throw new UsageException("the file and --json both go to standard output; leave out --json");
    }
    return super.run();
  }

  @Override
  int run(Volume volume, FileAddress wanted) throws IOException {
    FileNode file = volume.find(wanted.path());
    if (file.kind() != FileNode.Kind.FILE) {
      throw new FileSystemException(
          FileSystemException.Kind.WRONG_KIND, wanted.toString(), "this is not a file");
    }
    Long given = length;
    long bytes = given == null ? Math.max(0, file.size() - offset) : given;
    if (offset > file.size() || bytes > file.size() - offset) {
      throw new UsageException(
          "%d bytes at %d go past the file's end, %d".formatted(bytes, offset, file.size()));
    }
    byte[] piece = new byte[(int) Math.min(PIECE, bytes)];
    try (OutputStream stream = new CheckedOutput(out())) {
      for (long done = 0; done < bytes; done += piece.length) {
        int n = (int) Math.min(piece.length, bytes - done);
        file.read(offset + done, MemorySegment.ofArray(piece).asSlice(0, n));
        stream.write(piece, 0, n);
      }
    }
    return ExitCode.OK;
  }
}
