package io.gpunvme.cli;

import io.gpunvme.base.Reason;
import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import org.jspecify.annotations.Nullable;

/**
 * A file that appears whole or not at all: it is written under another name in the same folder, and
 * {@link #commit} renames it. A file that is not a regular one (a pipe, {@code /dev/null}) is
 * written directly.
 */
final class OutputFile implements AutoCloseable {
  private final Path target;
  private final @Nullable Path part;
  private final @Nullable FileChannel channel;
  private final OutputStream stream;

  private OutputFile(
      Path target, @Nullable Path part, @Nullable FileChannel channel, OutputStream stream) {
    this.target = target;
    this.part = part;
    this.channel = channel;
    this.stream = stream;
  }

  static OutputFile create(Path wanted) throws IOException {
    Path target = Files.exists(wanted) ? wanted.toRealPath() : wanted;
    if (Files.isDirectory(target)) {
      throw new UsageException(wanted + " is a folder");
    }
    if (Files.exists(target) && !Files.isRegularFile(target)) {
      return new OutputFile(target, null, null, Files.newOutputStream(target));
    }
    Path name = target.toAbsolutePath().getFileName();
    Path part = target.resolveSibling("." + name + "." + ProcessHandle.current().pid() + ".part");
    Leftovers.add(part);
    try {
      FileChannel channel =
          FileChannel.open(part, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
      return new OutputFile(target, part, channel, Channels.newOutputStream(channel));
    } catch (IOException e) {
      Leftovers.delete(part);
      throw about(wanted, e);
    }
  }

  /** The same failure, with the name of the file that was asked for. */
  private static IOException about(Path wanted, IOException e) {
    String name = wanted.toString();
    return switch (e) {
      case NoSuchFileException missing -> new NoSuchFileException(name);
      case AccessDeniedException denied -> new AccessDeniedException(name);
      case FileSystemException other -> new FileSystemException(name, null, other.getReason());
      default -> new FileSystemException(name, null, Reason.of(e));
    };
  }

  /** The stream to write to; the caller does not close it. */
  OutputStream stream() {
    return new FilterOutputStream(stream) {
      @Override
      public void write(byte[] bytes, int offset, int length) throws IOException {
        try {
          stream.write(bytes, offset, length);
        } catch (IOException e) {
          throw about(target, e);
        }
      }

      @Override
      public void close() throws IOException {
        stream.flush();
      }
    };
  }

  /**
   * The file, to be written here and there instead; the caller does not close it.
   *
   * @throws UsageException if it is not a regular one
   */
  FileChannel channel() {
    if (channel == null) {
      throw new UsageException(
          target + " is not a regular file: this is not written from its beginning to its end");
    }
    return channel;
  }

  /** Everything is written: the file gets its name. */
  void commit() throws IOException {
    try {
      stream.close();
    } catch (IOException e) {
      throw about(target, e);
    }
    Path written = part;
    if (written != null) {
      Files.move(written, target, StandardCopyOption.REPLACE_EXISTING);
      Leftovers.keep(written);
    }
  }

  /** Removes everything that was written, unless {@link #commit} was called. */
  @Override
  public void close() throws IOException {
    try {
      stream.close();
    } finally {
      if (part != null) {
        Leftovers.delete(part);
      }
    }
  }
}
