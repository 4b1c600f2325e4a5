package io.gpunvme.sim.media;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Reason;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermission;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A file that equals the medium byte for byte: no header, sparse where nothing was written, there
 * again after a restart.
 */
public final class FileMedia implements Media {
  private static final Set<PosixFilePermission> WRITERS =
      EnumSet.of(
          PosixFilePermission.OWNER_WRITE,
          PosixFilePermission.GROUP_WRITE,
          PosixFilePermission.OTHERS_WRITE);

  private static final int NEW_FILE_MODE = 0644;
  private static final long ZERO_CHUNK = 1 << 20;

  private final int fd;
  private final long size;
  private final boolean readOnly;

  // Written by close, read by every access: a descriptor number may belong to somebody else by
  // then.
  private volatile boolean closed;

  private FileMedia(int fd, long size, boolean readOnly) {
    this.fd = fd;
    this.size = size;
    this.readOnly = readOnly;
  }

  /**
   * Opens or creates a backing file.
   *
   * @param size bytes; a missing or empty file becomes that long, another must be; 0: as the file
   *     is
   * @param granule the size must be a multiple of this many bytes
   * @param readOnly opens for reading; writing then throws
   * @throws InvalidRequestException if there is no such file or directory, it is not a regular
   *     file, it may not be written, somebody else has it open as a medium, or its size does not
   *     fit; nothing has been changed then
   */
  public static FileMedia open(Path file, long size, int granule, boolean readOnly) {
    boolean exists = Files.exists(file);
    check(file, size, readOnly, exists);
    int fd = open(file, readOnly, exists);
    try {
      if (!Posix.tryLock(fd, !readOnly)) {
        throw refusal(file, "is in use as another device's medium, here or in another process");
      }
      long actual = Posix.size(fd);
      if (actual == 0 && size != 0 && !readOnly) {
        Posix.ftruncate(fd, size);
        actual = size;
      }
      checkSize(file, actual, size, granule);
      return new FileMedia(fd, actual, readOnly);
    } catch (PosixException e) {
      Posix.close(fd);
      throw refusal(file, String.valueOf(e.getMessage()));
    } catch (InvalidRequestException e) {
      Posix.close(fd);
      throw e;
    }
  }

  private static void check(Path file, long size, boolean readOnly, boolean exists) {
    Path folder = file.toAbsolutePath().getParent();
    if (folder == null || !Files.isDirectory(folder)) {
      throw refusal(file, "the directory " + folder + " does not exist");
    }
    if (!exists && (size == 0 || readOnly)) {
      throw refusal(file, "does not exist; give size= to create it, without readonly=on");
    }
    if (exists && !Files.isRegularFile(file)) {
      throw refusal(file, "is not a regular file");
    }
    if (exists && !readOnly && !writable(file)) {
      throw refusal(file, "may not be written; use readonly=on");
    }
  }

  /** The mode counts even for root, who could write everything. */
  private static boolean writable(Path file) {
    try {
      Set<PosixFilePermission> mode = Files.getPosixFilePermissions(file);
      return Files.isWritable(file) && mode.stream().anyMatch(WRITERS::contains);
    } catch (IOException e) {
      throw refusal(file, Reason.of(e));
    }
  }

  private static int open(Path file, boolean readOnly, boolean exists) {
    int flags = (readOnly ? Posix.O_RDONLY : Posix.O_RDWR) | Posix.O_CLOEXEC;
    int create = exists ? 0 : Posix.O_CREAT | Posix.O_EXCL;
    try {
      return Posix.open(file.toString(), flags | create, exists ? 0 : NEW_FILE_MODE);
    } catch (PosixException e) {
      throw refusal(file, String.valueOf(e.getMessage()));
    }
  }

  private static void checkSize(Path file, long actual, long size, int granule) {
    if (size != 0 && actual != size) {
      throw refusal(file, "is " + actual + " bytes long, size= says " + size);
    }
    if (actual == 0) {
      throw refusal(file, "is empty; give size=");
    }
    if (actual % granule != 0) {
      throw refusal(file, "is " + actual + " bytes long, not a multiple of lba=" + granule);
    }
  }

  private static InvalidRequestException refusal(Path file, @Nullable String problem) {
    return new InvalidRequestException("file=" + file + ": " + problem);
  }

  /** The descriptor; this medium's to close. */
  int fd() {
    return fd;
  }

  @Override
  public long size() {
    return size;
  }

  @Override
  public void read(long position, MemorySegment target, long offset, long length)
      throws IOException {
    checkOpen();
    long done;
    try {
      done = Posix.pread(fd, target.asSlice(offset, length), position);
    } catch (PosixException e) {
      throw failure(e);
    }
    if (done != length) {
      throw new IOException("the backing file ends at " + (position + done) + ", not at " + size);
    }
  }

  @Override
  public void write(long position, MemorySegment source, long offset, long length)
      throws IOException {
    checkWritable();
    try {
      Posix.pwrite(fd, source.asSlice(offset, length), position);
    } catch (PosixException e) {
      throw failure(e);
    }
  }

  @Override
  public void zero(long position, long length) throws IOException {
    checkWritable();
    if (length == 0) {
      return;
    }
    try {
      Posix.zeroRange(fd, position, length);
    } catch (PosixException e) {
      if (e.errno() != Errno.EOPNOTSUPP) {
        throw failure(e);
      }
      trim(position, length);
    }
  }

  @Override
  public void trim(long position, long length) throws IOException {
    checkWritable();
    if (length == 0) {
      return;
    }
    try {
      Posix.punchHole(fd, position, length);
    } catch (PosixException e) {
      if (e.errno() != Errno.EOPNOTSUPP) {
        throw failure(e);
      }
      writeZeros(position, length);
    }
  }

  private void writeZeros(long position, long length) throws IOException {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment zeros = arena.allocate(Math.min(length, ZERO_CHUNK), Long.BYTES);
      for (long done = 0; done < length; done += zeros.byteSize()) {
        write(position + done, zeros, 0, Math.min(zeros.byteSize(), length - done));
      }
    }
  }

  @Override
  public void flush() throws IOException {
    checkOpen();
    try {
      Posix.fdatasync(fd);
    } catch (PosixException e) {
      throw failure(e);
    }
  }

  @Override
  public synchronized void close() throws IOException {
    if (closed) {
      return;
    }
    try {
      if (!readOnly) {
        flush();
      }
    } finally {
      closed = true;
      Posix.close(fd);
    }
  }

  private void checkOpen() throws IOException {
    if (closed) {
      throw new IOException("the backing file is closed");
    }
  }

  /** Refuses if it may not be written, or is closed. */
  void checkWritable() throws IOException {
    checkOpen();
    if (readOnly) {
      throw new IOException("the backing file is open for reading only");
    }
  }

  private static IOException failure(PosixException e) {
    String message = String.valueOf(e.getMessage());
    return switch (e.errno()) {
      case Errno.ENOSPC, Errno.EDQUOT, Errno.EFBIG -> new NoSpaceException(message, e);
      default -> new IOException(message, e);
    };
  }
}
