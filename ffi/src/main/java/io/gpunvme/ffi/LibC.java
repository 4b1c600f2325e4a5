package io.gpunvme.ffi;

/** The functions of {@link Posix}. */
final class LibC {
  static final CFunction CLOSE = CFunction.ofInt("close");
  static final CFunction FALLOCATE = CFunction.ofInt("fallocate");
  static final CFunction FCNTL = CFunction.ofInt("fcntl");
  static final CFunction FDATASYNC = CFunction.ofInt("fdatasync");
  static final CFunction FLOCK = CFunction.ofInt("flock");
  static final CFunction FSTATFS = CFunction.ofInt("fstatfs");
  static final CFunction FTRUNCATE = CFunction.ofInt("ftruncate");
  static final CFunction IOCTL = CFunction.ofInt("ioctl");
  static final CFunction LSEEK = CFunction.ofLong("lseek");
  static final CFunction MADVISE = CFunction.ofInt("madvise");
  static final CFunction MEMFD_CREATE = CFunction.ofInt("memfd_create");
  static final CFunction MINCORE = CFunction.ofInt("mincore");
  static final CFunction MLOCK = CFunction.ofInt("mlock");
  static final CFunction MMAP = CFunction.ofLong("mmap");
  static final CFunction MUNMAP = CFunction.ofInt("munmap");
  static final CFunction OPEN = CFunction.ofInt("open");
  static final CFunction POSIX_FADVISE = CFunction.ofInt("posix_fadvise");
  static final CFunction PREAD = CFunction.ofLong("pread");
  static final CFunction PWRITE = CFunction.ofLong("pwrite");
  static final CFunction SCHED_GETAFFINITY = CFunction.ofInt("sched_getaffinity");
  static final CFunction SCHED_SETAFFINITY = CFunction.ofInt("sched_setaffinity");
  static final CFunction STATX = CFunction.ofInt("statx");
  static final CFunction STRERROR = CFunction.ofLong("strerror");
  static final CFunction SYSCALL = CFunction.ofLong("syscall");
  static final CFunction SYSCONF = CFunction.ofLong("sysconf");

  private LibC() {}
}
