package io.gpunvme.ffi;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A counter that the kernel, or another thread, adds to and one thread waits for (eventfd(2)). Safe
 * for all threads.
 */
public final class EventFd implements AutoCloseable {
  private static final int EFD_CLOEXEC = Posix.O_CLOEXEC;

  private static final int F_GETFL = 3;
  private static final int F_SETFL = 4;
  private static final int O_NONBLOCK = 0x800;

  private static final CFunction EVENTFD = CFunction.ofInt("eventfd");
  private static final CFunction READ = CFunction.ofLong("read");
  private static final CFunction WRITE = CFunction.ofLong("write");

  private final int fd;
  private boolean closed;

  private EventFd(int fd) {
    this.fd = fd;
  }

  /** A counter at 0. */
  public static EventFd create() {
    return new EventFd(
        (int) Native.once("eventfd", () -> "0", s -> EVENTFD.call(s, 0, EFD_CLOEXEC)));
  }

  /**
   * Owns a counter that somebody else has made and shares with us. Adding to it never waits: while
   * the counter is at its limit {@link #signal} does nothing.
   *
   * @param fd closed if it is not a counter
   * @throws PosixException EINVAL if it is something else
   */
  public static EventFd received(int fd) {
    try {
      Path link = Path.of("/proc/self/fd/" + fd);
      if (!Files.readSymbolicLink(link).toString().equals("anon_inode:[eventfd]")) {
        throw new PosixException("eventfd", "fd " + fd, Errno.EINVAL);
      }
      Posix.fcntl(fd, F_SETFL, Posix.fcntl(fd, F_GETFL, 0) | O_NONBLOCK);
      return new EventFd(fd);
    } catch (IOException e) {
      Posix.close(fd);
      throw new PosixException("readlink", "fd " + fd, Errno.EINVAL);
    } catch (PosixException e) {
      Posix.close(fd);
      throw e;
    }
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
          "read", () -> "event fd " + open, s -> READ.call(s, open, value, Long.BYTES));
      return value.get(JAVA_LONG, 0);
    }
  }

  /** Adds 1. */
  public void signal() {
    int open = fd();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment one = arena.allocateFrom(JAVA_LONG, 1);
      Native.restarting(
          "write", () -> "event fd " + open, s -> WRITE.call(s, open, one, Long.BYTES));
    } catch (PosixException e) {
      if (e.errno() != Errno.EAGAIN) {
        throw e;
      }
      // At its limit: whoever reads it has more than enough to be told of.
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
