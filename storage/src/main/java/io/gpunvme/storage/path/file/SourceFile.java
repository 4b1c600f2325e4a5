package io.gpunvme.storage.path.file;

import static java.lang.foreign.ValueLayout.JAVA_INT;

import io.gpunvme.base.CloseAll;
import io.gpunvme.ffi.FileStatus;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * One regular file, or a block device for reading, open: with the page cache, and past it where the
 * file system can. Safe for all threads; nobody uses a descriptor of it after {@link #close}.
 */
public final class SourceFile implements AutoCloseable {
  /** Of a range, to know whether it is in the page cache. */
  static final int WINDOWS = 64;

  /** What O_DIRECT is taken to need where the kernel does not say. */
  private static final int USUAL_ALIGNMENT = 4096;

  /** No device has smaller blocks. */
  private static final int SECTOR = 512;

  /** {@code _IO(0x12, 104)}: the logical block of a block device, an {@code int}. */
  private static final long BLKSSZGET = 0x1268;

  private final String name;
  private final boolean writable;
  private final int fd;
  private final FileStatus status;
  private final String fileSystem;
  private final boolean residencyKnown;
  private final Residency residency;

  private @Nullable Direct direct;
  private volatile boolean closed;

  /** The opening past the page cache: a descriptor, or -1 and why there is none. */
  private record Direct(int fd, String refusal) implements AutoCloseable {
    @Override
    public void close() {
      if (fd >= 0) {
        Posix.close(fd);
      }
    }
  }

  private SourceFile(String name, boolean writable, int fd, FileStatus status) {
    this.name = name;
    this.writable = writable;
    this.fd = fd;
    this.status = status;
    fileSystem = FileSystemKind.name(Posix.fstatfsType(fd));
    residencyKnown = Files.isWritable(Path.of(name)) || ownedByUser(status);
    residency = new Residency(fd, this::size);
  }

  private static boolean ownedByUser(FileStatus status) {
    try {
      Object user = Files.getAttribute(Path.of("/proc/self"), "unix:uid");
      return Objects.equals(user, status.owner());
    } catch (IOException | UnsupportedOperationException e) {
      return false;
    }
  }

  /**
   * Opens a file.
   *
   * @param writable for writing too; not for block devices, which may carry a file system
   * @throws StorageException {@link Kind#GONE} if it does not exist, {@link Kind#PERMISSION},
   *     {@link Kind#UNSUPPORTED} if it is something else
   */
  public static SourceFile open(String file, boolean writable) {
    try {
      requireSupported(file, writable);
      int access = writable ? Posix.O_RDWR : Posix.O_RDONLY;
      int fd = Posix.open(file, access | Posix.O_CLOEXEC, 0);
      return CloseAll.orClose(
          () -> new SourceFile(file, writable, fd, Posix.statx(fd)), () -> Posix.close(fd));
    } catch (PosixException e) {
      throw FileErrors.of(file, e);
    }
  }

  /** Before it is opened: opening a pipe waits, and opening a device may do anything. */
  private static void requireSupported(String file, boolean writable) {
    int named = Posix.open(file, Posix.O_PATH | Posix.O_CLOEXEC, 0);
    FileStatus.Type type;
    try {
      type = Posix.statx(named).type();
    } finally {
      Posix.close(named);
    }
    String refusal =
        switch (type) {
          case REGULAR -> "";
          case BLOCK_DEVICE ->
              writable
                  ? "a block device can be opened for reading only: name a file on it, or bind an"
                      + " NVMe device to vfio-pci"
                  : "";
          case DIRECTORY -> "it is a directory: name a file in it";
          case OTHER -> "it is neither a regular file nor a block device";
        };
    if (!refusal.isEmpty()) {
      throw new StorageException(Kind.UNSUPPORTED, file, -1, -1, refusal, null);
    }
  }

  /** The path it was opened by. */
  public String name() {
    return name;
  }

  /** Whether it is open for writing too. */
  public boolean writable() {
    return writable;
  }

  /** Whether it is a block device. */
  public boolean isBlockDevice() {
    return status.type() == FileStatus.Type.BLOCK_DEVICE;
  }

  /** Its bytes now. */
  public long size() {
    requireOpen();
    try {
      return Posix.end(fd);
    } catch (PosixException e) {
      throw FileErrors.of(name, e);
    }
  }

  /** The logical block of a block device in bytes; 512 of a file. */
  public int blockSize() {
    requireOpen();
    if (!isBlockDevice()) {
      return SECTOR;
    }
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = arena.allocate(JAVA_INT);
      Posix.ioctl(fd, BLKSSZGET, bytes);
      return bytes.get(JAVA_INT, 0);
    } catch (PosixException e) {
      throw FileErrors.of(name, e);
    }
  }

  /** Major and minor number of the device it lies on, or is: {@code 259:1}. */
  public String device() {
    return status.major() + ":" + status.minor();
  }

  /** The type of its file system, as in {@code ext4}; of a block device that of its node. */
  public String fileSystem() {
    return fileSystem;
  }

  // ---- descriptors

  /** The descriptor that goes through the page cache; this object closes it. */
  public int fd() {
    requireOpen();
    return fd;
  }

  /** Whether there is a descriptor that goes past the page cache; opens it when first asked. */
  public boolean hasDirect() {
    return direct().fd >= 0;
  }

  /** Why there is no descriptor that goes past the page cache; empty if there is one. */
  public String directRefusal() {
    return direct().refusal;
  }

  /**
   * The descriptor that goes past the page cache; this object closes it.
   *
   * @throws IllegalStateException if there is none
   */
  public int directFd() {
    Direct there = direct();
    if (there.fd < 0) {
      throw new IllegalStateException(name + ": " + there.refusal);
    }
    return there.fd;
  }

  /** What offsets and lengths of transfers past the page cache are multiples of. */
  public int directAlignment() {
    return alignment(status.directOffsetAlignment());
  }

  /** What memory addresses of transfers past the page cache are multiples of. */
  public int directMemoryAlignment() {
    return alignment(status.directMemoryAlignment());
  }

  private int alignment(int told) {
    return status.directKnown() && told > 0 ? Math.max(SECTOR, told) : USUAL_ALIGNMENT;
  }

  private synchronized Direct direct() {
    requireOpen();
    if (direct == null) {
      direct = openDirect();
    }
    return direct;
  }

  private Direct openDirect() {
    if (!isBlockDevice() && FileSystemKind.inMemory(fileSystem)) {
      // Linux 6.6 and newer take the flag on tmpfs and copy all the same.
      return new Direct(-1, fileSystem + " has no O_DIRECT: its pages are the page cache");
    }
    if (status.directKnown() && status.directOffsetAlignment() == 0 && !isBlockDevice()) {
      return new Direct(-1, fileSystem + " has no O_DIRECT for this file");
    }
    try (Arena arena = Arena.ofConfined()) {
      int access = writable ? Posix.O_RDWR : Posix.O_RDONLY;
      int bytes = Math.max(directAlignment(), directMemoryAlignment());
      MemorySegment block = arena.allocate(bytes, bytes);
      int opened = Posix.open(name, access | Posix.O_CLOEXEC | Posix.O_DIRECT, 0);
      try {
        // Some file systems take the flag and then refuse to read.
        Posix.pread(opened, block, 0);
        return new Direct(opened, "");
      } catch (RuntimeException | Error e) {
        CloseAll.after(e, () -> Posix.close(opened));
        throw e;
      }
    } catch (PosixException e) {
      return new Direct(-1, fileSystem + " has no O_DIRECT for this file: " + e.getMessage());
    }
  }

  // ---- page cache

  /** Whether {@link #residency} can be told: Linux tells those who own the file or may write it. */
  public boolean residencyKnown() {
    return residencyKnown;
  }

  /**
   * Share of a range that the page cache holds, 0 to 1, by pages. Of ranges longer than all the
   * windows together only these are looked at, evenly spread. What lies past the end counts for
   * nothing; 0 where it is not known ({@link #residencyKnown}).
   *
   * @param windows of 64 KiB, at least 2
   */
  public double residency(long offset, long length, int windows) {
    long end = Math.min(size(), offset + length);
    return residencyKnown && offset >= 0 && end > offset ? share(offset, end, windows) : 0;
  }

  /** The same with as many windows as one range needs. */
  public double residency(long offset, long length) {
    return residency(offset, length, WINDOWS);
  }

  /**
   * Whether the page cache holds the page with this byte; false where it is not known. Quicker than
   * {@link #residency}.
   */
  public boolean isResident(long offset) {
    requireOpen();
    if (!residencyKnown) {
      return false;
    }
    try {
      return residency.isResident(offset);
    } catch (PosixException e) {
      throw FileErrors.of(name, e);
    }
  }

  private double share(long from, long to, int windows) {
    try {
      return residency.share(from, to, windows);
    } catch (PosixException e) {
      throw FileErrors.of(name, e);
    }
  }

  /**
   * Writes out what is dirty of this file and takes its pages from the page cache; pages that
   * somebody has mapped, or that are locked, stay. Needs no rights.
   */
  public void dropCache() {
    sync();
    try {
      Posix.fadvise(fd, 0, 0, Posix.POSIX_FADV_DONTNEED);
    } catch (PosixException e) {
      throw FileErrors.of(name, e);
    }
  }

  /** Returns once everything written to the file is on stable storage. */
  public void sync() {
    requireOpen();
    try {
      Posix.fdatasync(fd);
    } catch (PosixException e) {
      throw FileErrors.of(name, e);
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException(name + " is closed");
    }
  }

  /** Closes its descriptors. Idempotent. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    CloseAll.all(residency, direct, () -> Posix.close(fd));
  }

  @Override
  public String toString() {
    return name;
  }
}
