package io.gpunvme.storage.fs;

import io.gpunvme.base.Reason;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** A file of the running system as a {@link BlockReader}: an image, or one of a model's files. */
public final class ImageReader implements BlockReader {
  /** Buffers of channels are at most this long. */
  private static final long PIECE = 1 << 30;

  private final String name;
  private final FileChannel channel;
  private final long size;

  private ImageReader(String name, FileChannel channel, long size) {
    this.name = name;
    this.channel = channel;
    this.size = size;
  }

  /**
   * Opens a file.
   *
   * @throws FileSystemException if it is a folder
   * @throws StorageException if it cannot be opened
   */
  public static ImageReader open(Path file) {
    if (Files.isDirectory(file)) {
      throw new FileSystemException(
          FileSystemException.Kind.WRONG_KIND,
          file.toString(),
          "this is a folder, not an image or a device");
    }
    try {
      FileChannel channel = FileChannel.open(file, StandardOpenOption.READ);
      return new ImageReader(file.toString(), channel, channel.size());
    } catch (IOException e) {
      throw new StorageException(
          Kind.GONE, file.toString(), -1, -1, "cannot be opened: " + Reason.of(e), e);
    }
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public void read(long offset, MemorySegment target) {
    long length = target.byteSize();
    requireInside(offset, length);
    for (long done = 0; done < length; ) {
      long n = Math.min(PIECE, length - done);
      ByteBuffer piece = target.asSlice(done, n).asByteBuffer();
      int read;
      try {
        read = channel.read(piece, offset + done);
      } catch (IOException e) {
        throw new StorageException(
            Kind.IO, name, offset, length, "reading failed: " + Reason.of(e), e);
      }
      if (read <= 0) {
        throw new StorageException(
            Kind.SHORT_READ, name, offset, length, "the file is shorter than it was", null);
      }
      done += read;
    }
  }

  @Override
  public void close() {
    try {
      channel.close();
    } catch (IOException e) {
      throw new StorageException(Kind.IO, name, -1, -1, "closing failed: " + Reason.of(e), e);
    }
  }
}
