package io.gpunvme.nvme.pci.host;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.Mapping;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.pci.RegisterAccess;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.nio.file.Path;

/**
 * An open device node or sysfs file. Safe for all threads: a descriptor number is never used after
 * {@link #close}, when it may already be somebody else's.
 */
public final class DeviceFile implements RegisterAccess, AutoCloseable {
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final String path;
  private final int fd;
  private boolean closed;

  /**
   * Owns a descriptor that a system call returned.
   *
   * @param path what it is, for messages
   */
  public DeviceFile(String path, int fd) {
    this.path = path;
    this.fd = fd;
  }

  /**
   * Opens a file for reading and writing.
   *
   * @throws PosixException if that fails
   */
  public static DeviceFile open(Path path) {
    return open(path, Posix.O_RDWR);
  }

  /**
   * Opens a file.
   *
   * @param flags {@code Posix.O_...}; the descriptor is never inherited by other programs
   * @throws PosixException if that fails
   */
  public static DeviceFile open(Path path, int flags) {
    return new DeviceFile(path.toString(), Posix.open(path.toString(), flags | Posix.O_CLOEXEC, 0));
  }

  /** What it is, for messages. */
  public String path() {
    return path;
  }

  /**
   * The descriptor, to be named in a call on another file.
   *
   * @throws IllegalStateException if this is closed
   */
  public synchronized int fd() {
    requireOpen();
    return fd;
  }

  /**
   * A device-specific request.
   *
   * @param argument see {@link Posix#ioctl}
   * @throws PosixException if it fails
   * @throws IllegalStateException if this is closed
   */
  public synchronized int ioctl(long request, MemorySegment argument) {
    requireOpen();
    return Posix.ioctl(fd, request, argument);
  }

  /** As {@link #ioctl(long, MemorySegment)}, with a number for argument. */
  public int ioctl(long request, long argument) {
    return ioctl(request, MemorySegment.ofAddress(argument));
  }

  /** Maps part of it for reading and writing. */
  public synchronized Mapping map(long offset, long bytes) {
    requireOpen();
    return Mapping.shared(fd, offset, bytes, Posix.PROT_READ | Posix.PROT_WRITE);
  }

  /**
   * Reads 1, 2 or 4 little-endian bytes, zero-extended; all ones of that width if the file is
   * closed, ends before, or the device behind it is gone.
   */
  @Override
  public synchronized int read(long offset, int bytes) {
    int ones = bytes == Integer.BYTES ? -1 : (1 << bytes * Byte.SIZE) - 1;
    if (closed) {
      return ones;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment value = arena.allocate(INT);
      boolean whole = Posix.pread(fd, value.asSlice(0, bytes), offset) == bytes;
      return whole ? value.get(INT, 0) : ones;
    } catch (PosixException e) {
      if (isGone(e)) {
        return ones;
      }
      throw e;
    }
  }

  /** Writes the low 1, 2 or 4 bytes of a value; nothing happens where {@link #read} gives ones. */
  @Override
  public synchronized void write(long offset, int bytes, int value) {
    if (closed) {
      return;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment memory = arena.allocate(INT);
      memory.set(INT, 0, value);
      Posix.pwrite(fd, memory.asSlice(0, bytes), offset);
    } catch (PosixException e) {
      if (!isGone(e)) {
        throw e;
      }
    }
  }

  /** Whether an error says that there is no device behind the file any more. */
  public static boolean isGone(PosixException e) {
    return switch (e.errno()) {
      case Errno.EIO, Errno.ENODEV, Errno.EFAULT -> true;
      default -> false;
    };
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException(path + " is closed");
    }
  }

  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      Posix.close(fd);
    }
  }
}
