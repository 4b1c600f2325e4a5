package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * A counter that the kernel, or another thread, adds to and one thread waits for (eventfd(2)). Safe
 * for all threads.
 */
public final class EventFd implements AutoCloseable {
  private static final int EFD_CLOEXEC = Posix.O_CLOEXEC;

  private static final MethodHandle EVENTFD =
      Native.capturing("eventfd", FunctionDescriptor.of(JAVA_INT, JAVA_INT, JAVA_INT));
  private static final MethodHandle READ =
      Native.capturing("read", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG));
  private static final MethodHandle WRITE =
      Native.capturing("write", FunctionDescriptor.of(JAVA_LONG, JAVA_INT, ADDRESS, JAVA_LONG));

  private final int fd;
  private boolean closed;

  private EventFd(int fd) {
    this.fd = fd;
  }

  /** A counter at 0. */
  public static EventFd create() {
    return new EventFd(
        (int) Native.once("eventfd", () -> "0", s -> (int) EVENTFD.invokeExact(s, 0, EFD_CLOEXEC)));
  }

  /**
   * The descriptor, for whoever is to add to it.
   *
   * @throws IllegalStateException if this is closed
   */
  public synchronized int fd() {
    if (closed) {
      throw new IllegalStateException("event descriptor is closed");
    }
    return fd;
  }

  /** Waits until the counter is above 0, sets it to 0 and returns what it was. */
  public long await() {
    int open = fd();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment value = arena.allocate(JAVA_LONG);
      Native.restarting(
          "read",
          () -> "event fd " + open,
          s -> (long) READ.invokeExact(s, open, value, (long) Long.BYTES));
      return value.get(JAVA_LONG, 0);
    }
  }

  /** Adds 1. */
  public void signal() {
    int open = fd();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment one = arena.allocateFrom(JAVA_LONG, 1);
      Native.restarting(
          "write",
          () -> "event fd " + open,
          s -> (long) WRITE.invokeExact(s, open, one, (long) Long.BYTES));
    }
  }

  /** Closes the descriptor; nobody may be waiting. Idempotent. */
  @Override
  public synchronized void close() {
    if (!closed) {
      closed = true;
      Posix.close(fd);
    }
  }
}
