package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Memory whose pages the kernel neither moves nor takes until this is closed, as it does for a
 * device's DMA. {@code mlock} only keeps pages in memory, not in place.
 *
 * <p>The memory is registered as buffers of an io_uring (Linux 5.1) that never does anything: of
 * what user programs can ask for, this is what pins pages. Safe for all threads.
 */
public final class PagePin implements AutoCloseable {
  // The same numbers on every architecture.
  private static final long SYS_IO_URING_SETUP = 425;
  private static final long SYS_IO_URING_REGISTER = 427;

  private static final int REGISTER_BUFFERS = 0;
  private static final int UNREGISTER_BUFFERS = 1;
  private static final int PARAMS_BYTES = 120;
  private static final long IOVEC_BYTES = 16;

  /** The kernel's limit for one buffer. */
  private static final long MOST_PER_BUFFER = 1L << 30;

  private static final MethodHandle SETUP =
      Native.capturing("syscall", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT, ADDRESS));
  private static final MethodHandle REGISTER =
      Native.capturing(
          "syscall",
          FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_INT, ADDRESS, JAVA_INT));

  private final int fd;
  private boolean closed;

  private PagePin(int fd) {
    this.fd = fd;
  }

  /**
   * Pins memory.
   *
   * @param memory native, writable, whole pages; not mapped from a file on disk
   * @throws PosixException if the kernel refuses: {@link Errno#ENOMEM} at the limit of locked
   *     memory, {@link Errno#EPERM} or ENOSYS where io_uring is switched off
   */
  public static PagePin pin(MemorySegment memory) {
    int fd = setup();
    try (Arena arena = Arena.ofConfined()) {
      int count = Math.toIntExact(Math.ceilDiv(memory.byteSize(), MOST_PER_BUFFER));
      MemorySegment buffers = arena.allocate(count * IOVEC_BYTES, Long.BYTES);
      for (int i = 0; i < count; i++) {
        long at = i * MOST_PER_BUFFER;
        buffers.set(JAVA_LONG, i * IOVEC_BYTES, memory.address() + at);
        buffers.set(
            JAVA_LONG,
            i * IOVEC_BYTES + Long.BYTES,
            Math.min(MOST_PER_BUFFER, memory.byteSize() - at));
      }
      register(fd, REGISTER_BUFFERS, buffers, count);
      return new PagePin(fd);
    } catch (RuntimeException e) {
      Posix.close(fd);
      throw e;
    }
  }

  private static int setup() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment params = arena.allocate(PARAMS_BYTES, Long.BYTES);
      return (int)
          Native.once(
              "io_uring_setup",
              () -> "1 entry",
              s -> (long) SETUP.invokeExact(s, SYS_IO_URING_SETUP, 1, params));
    }
  }

  private static void register(int fd, int operation, MemorySegment argument, int count) {
    Native.restarting(
        "io_uring_register",
        () -> "fd " + fd + " operation " + operation + ", " + count + " buffers",
        s -> (long) REGISTER.invokeExact(s, SYS_IO_URING_REGISTER, fd, operation, argument, count));
  }

  /** Lets the pages go. Idempotent. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      try {
        // Closing alone would do, but some time later.
        register(fd, UNREGISTER_BUFFERS, MemorySegment.NULL, 0);
      } finally {
        Posix.close(fd);
      }
    }
  }
}
