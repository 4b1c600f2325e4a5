package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Linux system calls on x86-64 and arm64, named and with the arguments of their man pages.
 *
 * <p>Offsets and lengths are in bytes. Every failure is a {@link PosixException}. Memory arguments
 * must be native (off-heap) segments. Safe for all threads.
 */
public final class Posix {
  public static final int O_RDONLY = 0;
  public static final int O_WRONLY = 1;
  public static final int O_RDWR = 2;
  public static final int O_CREAT = 0x40;
  public static final int O_EXCL = 0x80;
  public static final int O_TRUNC = 0x200;
  public static final int O_DSYNC = 0x1000;
  public static final int O_CLOEXEC = 0x80000;

  /** Only names the file: nothing is opened that could wait or be changed. */
  public static final int O_PATH = 0x200000;

  /** Past the page cache; the one flag of these that differs between architectures. */
  public static final int O_DIRECT =
      System.getProperty("os.arch").equals("aarch64") ? 0x10000 : 0x4000;

  private static final int SEEK_END = 2;
  public static final int PROT_NONE = 0;
  public static final int PROT_READ = 1;
  public static final int PROT_WRITE = 2;
  public static final int MAP_SHARED = 1;
  public static final int MAP_PRIVATE = 2;
  public static final int MAP_ANONYMOUS = 0x20;
  public static final int MAP_NORESERVE = 0x4000;
  public static final int MAP_POPULATE = 0x8000;

  public static final int MADV_SEQUENTIAL = 2;
  public static final int MADV_WILLNEED = 3;
  public static final int MADV_DONTNEED = 4;
  public static final int MADV_DONTFORK = 10;
  public static final int MADV_HUGEPAGE = 14;
  public static final int MADV_NOHUGEPAGE = 15;
  public static final int MADV_POPULATE_WRITE = 23;

  public static final int POSIX_FADV_RANDOM = 1;
  public static final int POSIX_FADV_SEQUENTIAL = 2;
  public static final int POSIX_FADV_WILLNEED = 3;
  public static final int POSIX_FADV_DONTNEED = 4;

  public static final int MFD_CLOEXEC = 1;
  public static final int MFD_ALLOW_SEALING = 2;
  public static final int MFD_HUGETLB = 4;
  public static final int MFD_HUGE_2MB = 21 << 26;
  public static final int FALLOC_FL_KEEP_SIZE = 1;
  public static final int FALLOC_FL_PUNCH_HOLE = 2;
  public static final int FALLOC_FL_ZERO_RANGE = 0x10;

  private static final int SC_PAGESIZE = 30;
  private static final int F_ADD_SEALS = 1033;
  private static final int F_SEAL_SEAL = 1;
  private static final int F_SEAL_SHRINK = 2;
  private static final int F_SEAL_GROW = 4;

  // statx(2): the layout of struct stat differs between architectures, this one does not.
  private static final int AT_EMPTY_PATH = 0x1000;
  private static final long STATFS_BYTES = 120;
  private static final long STATFS_BSIZE = 8;
  private static final long HUGETLBFS_MAGIC = 0x958458F6L;

  private static final int LOCK_SH = 1;
  private static final int LOCK_EX = 2;
  private static final int LOCK_NB = 4;
  private static final int PAGE_SIZE = readPageSize();

  private Posix() {}

  /** Bytes in a page of the CPU's smallest size: 4096 on x86-64, up to 65536 on arm64. */
  public static int pageSize() {
    return PAGE_SIZE;
  }

  private static int readPageSize() {
    return Math.toIntExact(
        Native.once("sysconf", () -> "page size", s -> LibC.SYSCONF.call(s, SC_PAGESIZE)));
  }

  /**
   * Opens a file.
   *
   * @param mode permissions of a file that {@link #O_CREAT} makes, else 0
   * @return its file descriptor
   */
  public static int open(String path, int flags, int mode) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment name = arena.allocateFrom(path);
      return (int) Native.restarting("open", () -> path, s -> LibC.OPEN.call(s, name, flags, mode));
    }
  }

  /**
   * Takes the advisory lock on a whole file without waiting; it ends when the last descriptor of
   * this opening is closed.
   *
   * @param exclusive alone, or together with others who do not ask for it alone
   * @return false if somebody else, in this process or another, holds it
   */
  public static boolean tryLock(int fd, boolean exclusive) {
    int operation = (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB;
    try {
      Native.restarting("flock", () -> "fd " + fd, s -> LibC.FLOCK.call(s, fd, operation));
      return true;
    } catch (PosixException e) {
      if (e.errno() == Errno.EAGAIN) {
        return false;
      }
      throw e;
    }
  }

  /** Closes {@code fd}; it is gone even when this throws, so it is never tried twice. */
  public static void close(int fd) {
    Native.giveBack("close", () -> "fd " + fd, s -> LibC.CLOSE.call(s, fd));
  }

  /** Makes the file {@code length} bytes long; what is added reads as zeroes. */
  public static void ftruncate(int fd, long length) {
    Native.restarting(
        "ftruncate", () -> "fd " + fd + " to " + length, s -> LibC.FTRUNCATE.call(s, fd, length));
  }

  /** Length of a regular file in bytes (0 for a device). */
  public static long size(int fd) {
    return statx(fd, FileStatus.SIZE).size();
  }

  /**
   * Where a regular file or a block device ends, in bytes. Allocates nothing, for those who ask
   * before each read; moves the position of the open file, which {@code pread} and the like ignore.
   */
  public static long end(int fd) {
    long end;
    try {
      end = LibC.LSEEK.call(Native.state(), fd, 0, SEEK_END);
    } catch (Throwable t) {
      throw Native.unexpected(t);
    }
    // The call that knows why; what has no end is empty.
    return end >= 0 ? end : size(fd);
  }

  /** What the kernel says about an open file. */
  public static FileStatus statx(int fd) {
    return statx(fd, FileStatus.ALL);
  }

  private static FileStatus statx(int fd, int mask) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment empty = arena.allocateFrom("");
      MemorySegment statx = arena.allocate(FileStatus.BYTES, Long.BYTES);
      Native.once(
          "statx",
          () -> "fd " + fd,
          s -> LibC.STATX.call(s, fd, empty, AT_EMPTY_PATH, mask, statx));
      return FileStatus.of(statx);
    }
  }

  /** The number of the file system's type (statfs(2)); ext2, ext3 and ext4 share one. */
  public static long fstatfsType(int fd) {
    try (Arena arena = Arena.ofConfined()) {
      return statfs(arena, fd).get(JAVA_LONG, 0);
    }
  }

  /**
   * What offset and length of a mapping of a file are multiples of, a power of two: {@link
   * #pageSize}, or the size of the huge pages that the file is made of.
   */
  public static long mappingUnit(int fd) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment statfs = statfs(arena, fd);
      return statfs.get(JAVA_LONG, 0) == HUGETLBFS_MAGIC
          ? statfs.get(JAVA_LONG, STATFS_BSIZE)
          : PAGE_SIZE;
    }
  }

  private static MemorySegment statfs(Arena arena, int fd) {
    MemorySegment statfs = arena.allocate(STATFS_BYTES, Long.BYTES);
    Native.restarting("fstatfs", () -> "fd " + fd, s -> LibC.FSTATFS.call(s, fd, statfs));
    return statfs;
  }

  /**
   * Says how part of a file will be used; {@link #POSIX_FADV_DONTNEED} takes its clean pages from
   * the page cache.
   *
   * @param length 0 for all from {@code offset} on
   * @param advice one of {@code POSIX_FADV_...}
   */
  public static void fadvise(int fd, long offset, long length, int advice) {
    int error;
    try {
      error = (int) LibC.POSIX_FADVISE.call(Native.state(), fd, offset, length, advice);
    } catch (Throwable t) {
      throw Native.unexpected(t);
    }
    if (error != 0) {
      // It returns the error number and leaves errno alone.
      String subject = "fd " + fd + " at " + offset + ", " + length + " bytes, advice " + advice;
      throw new PosixException("posix_fadvise", subject, error);
    }
  }

  /**
   * Tells which pages of mapped memory are in memory. Of a file that this process may neither write
   * nor owns, Linux says that all of them are.
   *
   * @param memory mapped, starts on a page boundary
   * @param pages native; receives a byte for each page of the memory, whose lowest bit is set if
   *     the page is there
   */
  public static void mincore(MemorySegment memory, MemorySegment pages) {
    long bytes = memory.byteSize();
    if (pages.byteSize() < Math.ceilDiv(bytes, PAGE_SIZE)) {
      throw new IllegalArgumentException(
          pages.byteSize() + " bytes for the pages of " + bytes + " bytes");
    }
    Native.restarting(
        "mincore", () -> range(memory), s -> LibC.MINCORE.call(s, memory, bytes, pages));
  }

  /**
   * Reads until {@code into} is full or the file ends.
   *
   * @return bytes read, less than {@code into} has only at the end of the file
   */
  public static long pread(int fd, MemorySegment into, long offset) {
    return transfer("pread", LibC.PREAD, fd, into, offset);
  }

  /**
   * Writes all of {@code from}.
   *
   * @return bytes written: the size of {@code from}
   */
  public static long pwrite(int fd, MemorySegment from, long offset) {
    return transfer("pwrite", LibC.PWRITE, fd, from, offset);
  }

  /**
   * Reads once: a signal, the end of the file or the kernel's own limits may end it early.
   *
   * @return bytes read, or an error number negated, among them {@link Errno#EINTR}
   */
  public static long tryPread(int fd, MemorySegment into, long offset) {
    return Native.errnoNegated(s -> LibC.PREAD.call(s, fd, into, into.byteSize(), offset));
  }

  /**
   * Writes once; see {@link #tryPread}.
   *
   * @return bytes written, or an error number negated
   */
  public static long tryPwrite(int fd, MemorySegment from, long offset) {
    return Native.errnoNegated(s -> LibC.PWRITE.call(s, fd, from, from.byteSize(), offset));
  }

  private static long transfer(
      String name, CFunction function, int fd, MemorySegment memory, long offset) {
    long done = 0;
    while (done < memory.byteSize()) {
      MemorySegment rest = memory.asSlice(done);
      long at = offset + done;
      long count =
          Native.restarting(
              name,
              () -> "fd " + fd + " at " + at + ", " + rest.byteSize() + " bytes",
              s -> function.call(s, fd, rest, rest.byteSize(), at));
      if (count == 0) {
        break;
      }
      done += count;
    }
    return done;
  }

  /** Returns once the file's data (and what is needed to read it) is on stable storage. */
  public static void fdatasync(int fd) {
    Native.restarting("fdatasync", () -> "fd " + fd, s -> LibC.FDATASYNC.call(s, fd));
  }

  /**
   * Changes the allocation of a byte range.
   *
   * @param mode 0 to allocate, or {@code FALLOC_FL_...} bits
   */
  public static void fallocate(int fd, int mode, long offset, long length) {
    Native.restarting(
        "fallocate",
        () -> "fd " + fd + " mode " + mode + " at " + offset + ", " + length + " bytes",
        s -> LibC.FALLOCATE.call(s, fd, mode, offset, length));
  }

  /** Gives the range back to the file system; it reads as zeroes and the length stays. */
  public static void punchHole(int fd, long offset, long length) {
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, length);
  }

  /**
   * Zeroes the range and keeps it allocated, extending the file where it lies past its end. Fails
   * with {@link Errno#EOPNOTSUPP} on file systems that cannot (tmpfs before Linux 6).
   */
  public static void zeroRange(int fd, long offset, long length) {
    fallocate(fd, FALLOC_FL_ZERO_RANGE, offset, length);
  }

  /**
   * Nobody who has the memfd, now or later, can make it shorter or longer any more.
   *
   * @param fd made with {@link #MFD_ALLOW_SEALING}
   */
  public static void sealSize(int fd) {
    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW);
  }

  static int fcntl(int fd, int command, int value) {
    return (int)
        Native.once(
            "fcntl",
            () -> "fd " + fd + " command " + command,
            s -> LibC.FCNTL.call(s, fd, command, value));
  }

  /** An unnamed file in memory; {@code name} only shows up under {@code /proc}. */
  public static int memfdCreate(String name, int flags) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment text = arena.allocateFrom(name);
      return (int)
          Native.once("memfd_create", () -> name, s -> LibC.MEMFD_CREATE.call(s, text, flags));
    }
  }

  /**
   * Maps memory that only {@link #munmap} ends; {@link Mapping} is the owner most callers want.
   *
   * @param length &gt; 0
   * @param offset into the file, a multiple of the page size
   */
  @SuppressWarnings("restricted")
  public static MemorySegment mmap(long length, int prot, int flags, int fd, long offset) {
    long address =
        Native.once(
            "mmap",
            () -> "fd " + fd + " at " + offset + ", " + length + " bytes",
            s -> LibC.MMAP.call(s, 0, length, prot, flags, fd, offset));
    return MemorySegment.ofAddress(address).reinterpret(length);
  }

  /** Unmaps what {@link #mmap} returned; touching it afterwards kills the process. */
  public static void munmap(MemorySegment memory) {
    long bytes = memory.byteSize();
    Native.giveBack("munmap", () -> range(memory), s -> LibC.MUNMAP.call(s, memory, bytes));
  }

  /** Keeps the pages in memory; limited by {@code ulimit -l}. */
  public static void mlock(MemorySegment memory) {
    long bytes = memory.byteSize();
    Native.once("mlock", () -> range(memory), s -> LibC.MLOCK.call(s, memory, bytes));
  }

  /**
   * Says how the memory will be used.
   *
   * @param memory starts on a page boundary
   * @param advice one of {@code MADV_...}
   */
  public static void madvise(MemorySegment memory, int advice) {
    long bytes = memory.byteSize();
    Native.restarting(
        "madvise",
        () -> range(memory) + " advice " + advice,
        s -> LibC.MADVISE.call(s, memory, bytes, advice));
  }

  private static String range(MemorySegment memory) {
    return "0x" + Long.toHexString(memory.address()) + ", " + memory.byteSize() + " bytes";
  }

  /**
   * A device-specific request, not repeated when a signal interrupts it.
   *
   * @param argument the structure it reads or writes, or {@link MemorySegment#ofAddress} of a value
   * @return what the driver returned, &gt;= 0
   */
  public static int ioctl(int fd, long request, MemorySegment argument) {
    return (int)
        Native.once(
            "ioctl",
            () -> "fd " + fd + " request 0x" + Long.toHexString(request),
            s -> LibC.IOCTL.call(s, fd, request, argument));
  }
}
