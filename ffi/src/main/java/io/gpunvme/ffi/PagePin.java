package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.gpunvme.base.CloseAll;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Memory whose pages the kernel neither moves nor takes until this is closed, as it does for a
 * device's DMA. {@code mlock} only keeps pages in memory, not in place.
 *
 * <p>The memory is registered as buffers of an io_uring (Linux 5.1) that never does anything: of
 * what user programs can ask for, this is what pins pages. Safe for all threads.
 */
public final class PagePin implements AutoCloseable {
  private static final long IOVEC_BYTES = 16;

  /** The kernel's limit for one buffer. */
  private static final long MOST_PER_BUFFER = 1L << 30;

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
    int fd;
    try (Arena arena = Arena.ofConfined()) {
      fd = UringAbi.setup(1, arena.allocate(UringAbi.PARAMS_BYTES, Long.BYTES));
    }
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
      UringAbi.register(fd, UringAbi.REGISTER_BUFFERS, buffers, count);
      return new PagePin(fd);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> Posix.close(fd));
      throw e;
    }
  }

  /** Lets the pages go. Idempotent. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      try {
        // Closing alone would do, but some time later.
        UringAbi.register(fd, UringAbi.UNREGISTER_BUFFERS, MemorySegment.NULL, 0);
      } finally {
        Posix.close(fd);
      }
    }
  }
}
