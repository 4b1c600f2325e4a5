package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.invoke.MethodHandle;

/**
 * The functions of {@link Posix}, each linked by its first call: to link one takes milliseconds,
 * and a program that reads a file calls few of them.
 */
final class LibC {
  private LibC() {}

  private static FunctionDescriptor transfer() {
    return FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG, JAVA_LONG);
  }

  private static FunctionDescriptor onMemory() {
    return FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG);
  }

  static final class Open {
    static final MethodHandle CALL =
        Native.variadic("open", 2, FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT));

    private Open() {}
  }

  static final class Close {
    static final MethodHandle CALL =
        Native.capturing("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));

    private Close() {}
  }

  static final class Fcntl {
    static final MethodHandle CALL =
        Native.variadic("fcntl", 2, FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT));

    private Fcntl() {}
  }

  static final class Flock {
    static final MethodHandle CALL =
        Native.capturing("flock", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));

    private Flock() {}
  }

  static final class Ftruncate {
    static final MethodHandle CALL =
        Native.capturing("ftruncate", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG));

    private Ftruncate() {}
  }

  static final class Lseek {
    static final MethodHandle CALL =
        Native.plain("lseek", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_INT));

    private Lseek() {}
  }

  static final class Statx {
    static final MethodHandle CALL =
        Native.capturing(
            "statx",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT, JAVA_INT, ADDRESS));

    private Statx() {}
  }

  static final class Pread {
    static final MethodHandle CALL = Native.capturing("pread", transfer());

    private Pread() {}
  }

  static final class Pwrite {
    static final MethodHandle CALL = Native.capturing("pwrite", transfer());

    private Pwrite() {}
  }

  static final class Fdatasync {
    static final MethodHandle CALL =
        Native.capturing("fdatasync", FunctionDescriptor.of(JAVA_INT, JAVA_INT));

    private Fdatasync() {}
  }

  static final class Fallocate {
    static final MethodHandle CALL =
        Native.capturing(
            "fallocate", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG));

    private Fallocate() {}
  }

  static final class MemfdCreate {
    static final MethodHandle CALL =
        Native.capturing("memfd_create", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));

    private MemfdCreate() {}
  }

  static final class Mmap {
    static final MethodHandle CALL =
        Native.capturing(
            "mmap",
            FunctionDescriptor.of(
                JAVA_LONG, ADDRESS, JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG));

    private Mmap() {}
  }

  static final class Munmap {
    static final MethodHandle CALL = Native.capturing("munmap", onMemory());

    private Munmap() {}
  }

  static final class Mlock {
    static final MethodHandle CALL = Native.capturing("mlock", onMemory());

    private Mlock() {}
  }

  static final class Madvise {
    static final MethodHandle CALL =
        Native.capturing("madvise", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, JAVA_INT));

    private Madvise() {}
  }

  static final class Mincore {
    static final MethodHandle CALL =
        Native.capturing("mincore", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_LONG, ADDRESS));

    private Mincore() {}
  }

  static final class Fadvise {
    static final MethodHandle CALL =
        Native.plain(
            "posix_fadvise",
            FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT));

    private Fadvise() {}
  }

  static final class Fstatfs {
    static final MethodHandle CALL =
        Native.capturing("fstatfs", FunctionDescriptor.of(JAVA_INT, JAVA_INT, ADDRESS));

    private Fstatfs() {}
  }

  static final class Ioctl {
    static final MethodHandle CALL =
        Native.variadic("ioctl", 2, FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_LONG, ADDRESS));

    private Ioctl() {}
  }
}
