package io.gpunvme.ffi;

import io.gpunvme.base.CloseAll;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.Optional;

/**
 * A UNIX stream socket that waits for connections at a path, which only this user may connect to.
 *
 * <p>One thread accepts; {@link #close} by any other ends that and removes the path.
 */
public final class UnixListener implements AutoCloseable {
  private static final int BACKLOG = 16;
  private static final int O_DIRECTORY =
      System.getProperty("os.arch").equals("aarch64") ? 0x4000 : 0x10000;
  private static final Duration LOCK_PATIENCE = Duration.ofSeconds(5);
  private static final Duration PROBE_PATIENCE = Duration.ofSeconds(1);
  private static final int SHUT_RDWR = 2;

  /** Once is enough, unless the host refuses it. */
  private static final long WAKE_MILLIS = 100;

  private static final CFunction BIND = CFunction.ofInt("bind");
  private static final CFunction LISTEN = CFunction.ofInt("listen");
  private static final CFunction ACCEPT = CFunction.ofInt("accept4");
  private static final CFunction SHUTDOWN = CFunction.ofInt("shutdown");

  private final int fd;
  private final Path path;
  private boolean stopping;
  private boolean accepting;

  private UnixListener(int fd, Path path) {
    this.fd = fd;
    this.path = path;
  }

  /**
   * Listens at a path. A socket there that nobody listens to any more, because its process was
   * killed, is replaced.
   *
   * @throws PosixException {@code EADDRINUSE} if somebody listens there, or there is another file;
   *     {@code ENOENT} if there is no such folder
   */
  public static UnixListener at(Path path) {
    // Two that start at once must not take each other's new socket for an old one.
    Path parent = path.toAbsolutePath().getParent();
    int folder = lockFolder(parent == null ? path : parent);
    UnixListener listener =
        CloseAll.orClose(
            () -> {
              removeStale(path);
              return bind(path);
            },
            () -> Posix.close(folder));
    return CloseAll.orClose(
        () -> {
          Posix.close(folder);
          return listener;
        },
        listener::close);
  }

  private static int lockFolder(Path folder) {
    int fd = Posix.open(folder.toString(), Posix.O_RDONLY | O_DIRECTORY | Posix.O_CLOEXEC, 0);
    long end = System.nanoTime() + LOCK_PATIENCE.toNanos();
    try {
      while (!Posix.tryLock(fd, true)) {
        if (System.nanoTime() > end) {
          throw new PosixException("flock", folder.toString(), Errno.EAGAIN);
        }
        Thread.sleep(10);
      }
      return fd;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      Posix.close(fd);
      throw new PosixException("flock", folder.toString(), Errno.EINTR);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> Posix.close(fd));
      throw e;
    }
  }

  private static void removeStale(Path path) {
    try {
      if (!Files.exists(path, LinkOption.NOFOLLOW_LINKS)) {
        return;
      }
      boolean other =
          Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS)
              || Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)
              || Files.isSymbolicLink(path);
      if (other || answers(path)) {
        throw new PosixException("bind", path.toString(), Errno.EADDRINUSE);
      }
      Files.deleteIfExists(path);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static boolean answers(Path path) {
    try {
      UnixSocket.connect(path, PROBE_PATIENCE).close();
      return true;
    } catch (PosixException e) {
      return e.errno() != Errno.ECONNREFUSED && e.errno() != Errno.ENOENT;
    }
  }

  private static UnixListener bind(Path path) {
    int fd = UnixSocket.stream();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment address = UnixSocket.address(arena, path);
      Native.once("bind", path::toString, s -> BIND.call(s, fd, address, address.byteSize()));
      // Nobody can connect before listen.
      Files.setPosixFilePermissions(path, PosixFilePermissions.fromString("rw-------"));
      Native.once("listen", path::toString, s -> LISTEN.call(s, fd, BACKLOG));
      return new UnixListener(fd, path);
    } catch (IOException e) {
      Posix.close(fd);
      throw new UncheckedIOException(e);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> Posix.close(fd));
      throw e;
    }
  }

  /** Where it listens. */
  public Path path() {
    return path;
  }

  /**
   * Waits for the next connection.
   *
   * @return empty once this is closed
   */
  public Optional<UnixSocket> accept() {
    synchronized (this) {
      if (stopping) {
        return Optional.empty();
      }
      accepting = true;
    }
    try {
      long accepted = Native.errnoNegated(s -> ACCEPT.call(s, fd, 0, 0, Posix.O_CLOEXEC));
      return outcome(accepted);
    } finally {
      synchronized (this) {
        accepting = false;
        notifyAll();
      }
    }
  }

  private synchronized Optional<UnixSocket> outcome(long accepted) {
    if (accepted >= 0) {
      UnixSocket socket = new UnixSocket((int) accepted, path.toString());
      if (!stopping) {
        return Optional.of(socket);
      }
      socket.close();
      return Optional.empty();
    }
    if (stopping) {
      return Optional.empty();
    }
    throw new PosixException("accept", path.toString(), (int) -accepted);
  }

  /** Has who accepts find that this is closed. */
  private void wake() {
    try {
      Native.giveBack("shutdown", path::toString, s -> SHUTDOWN.call(s, fd, SHUT_RDWR));
    } catch (RuntimeException | Error e) {
      // Whoever waits for the end of accept tries again.
    }
  }

  /** Stops listening and removes the path. Idempotent. */
  @Override
  public void close() {
    synchronized (this) {
      if (stopping) {
        return;
      }
      stopping = true;
      try {
        Files.deleteIfExists(path);
      } catch (IOException e) {
        // Whoever comes next finds that nobody listens, and removes it.
      }
      boolean interrupted = false;
      while (accepting) {
        wake();
        try {
          wait(WAKE_MILLIS);
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
    Posix.close(fd);
  }
}
