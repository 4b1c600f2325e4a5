package io.gpunvme.sim.serve;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.UnixListener;
import io.gpunvme.ffi.UnixSocket;
import io.gpunvme.sim.SimulatedController;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * Serves one embedded controller at a socket: one client at a time, others wait for their turn.
 *
 * <p>A client can make the controller reach only the client's own memory, and only while it is
 * connected. A misbehaving client ends at worst its own connection. When it disconnects, its memory
 * is unmapped, and the next client finds the controller as after power-on; the contents of the
 * namespaces stay. Safe for all threads.
 */
public final class VfioUserServer implements AutoCloseable {
  /** How long a client may take to answer, and to take what it is sent. */
  static final Duration PATIENCE = Duration.ofSeconds(5);

  private static final Set<Integer> SHORTAGES =
      Set.of(Errno.EMFILE, Errno.ENFILE, Errno.ENOMEM, Errno.ENOBUFS, Errno.ECONNABORTED);
  private static final long RETRY_MILLIS = 100;

  private static final System.Logger LOG = System.getLogger("io.gpunvme.sim.serve");

  private final SimulatedController controller;
  private final UnixListener listener;
  private final Thread thread;
  private final AtomicLong clients = new AtomicLong();
  private @Nullable ServerSession session;

  /** The last client may still have the doorbells; used by the thread that serves. */
  private boolean foul;

  private boolean closed;

  private VfioUserServer(SimulatedController controller, UnixListener listener) {
    this.controller = controller;
    this.listener = listener;
    thread = Thread.ofPlatform().daemon().name("vfio-user-server").unstarted(this::serve);
  }

  /**
   * Begins to serve.
   *
   * @param controller with workers of its own; stays the caller's, who uses it no more until this
   *     is closed, and closes it then
   * @param socket only this user may connect to it; removed by {@link #close}
   * @throws InvalidRequestException if it cannot be made; the message says why
   */
  public static VfioUserServer start(SimulatedController controller, Path socket) {
    UnixListener listener;
    try {
      listener = UnixListener.at(socket);
    } catch (PosixException e) {
      String why =
          switch (e.errno()) {
            case Errno.EADDRINUSE -> "somebody listens there already, or it is another file";
            case Errno.ENOENT -> "there is no such folder";
            default -> e.getMessage();
          };
      InvalidRequestException refused =
          new InvalidRequestException("cannot listen at " + socket + ": " + why);
      refused.initCause(e);
      throw refused;
    } catch (IllegalArgumentException e) {
      throw new InvalidRequestException("cannot listen at " + socket + ": " + e.getMessage());
    }
    VfioUserServer server = new VfioUserServer(controller, listener);
    server.thread.start();
    return server;
  }

  /** The socket that it listens on. */
  public Path socket() {
    return listener.path();
  }

  /** The number of clients that have connected so far. */
  public long clients() {
    return clients.get();
  }

  /** Waits until this is closed. */
  public void await() throws InterruptedException {
    thread.join();
  }

  private void serve() {
    try {
      Optional<UnixSocket> next = accept();
      while (next.isPresent()) {
        serve(next.get());
        next = accept();
      }
    } catch (RuntimeException e) {
      tell(System.Logger.Level.ERROR, "serving at " + listener.path() + " has ended", e);
    }
  }

  /** The next client. While the system is short of something clients wait in the socket. */
  private Optional<UnixSocket> accept() {
    boolean told = false;
    while (!isClosed()) {
      try {
        if (foul) {
          controller.startOver();
          foul = false;
        }
        return listener.accept();
      } catch (PosixException e) {
        if (!SHORTAGES.contains(e.errno())) {
          throw e;
        }
        if (!told) {
          tell(System.Logger.Level.WARNING, "clients have to wait", e);
          told = true;
        }
        LockSupport.parkNanos(this, TimeUnit.MILLISECONDS.toNanos(RETRY_MILLIS));
      }
    }
    return Optional.empty();
  }

  /** Telling may need what the system is short of: the Java library opens files for it. */
  private static void tell(System.Logger.Level level, String what, Throwable why) {
    try {
      LOG.log(level, what, why);
    } catch (RuntimeException | Error e) {
      // Serving is more important.
    }
  }

  private synchronized boolean isClosed() {
    return closed;
  }

  private void serve(UnixSocket socket) {
    long number = clients.incrementAndGet();
    ServerSession fresh;
    synchronized (this) {
      if (closed) {
        socket.close();
        return;
      }
      fresh = new ServerSession(controller, socket, "client " + number);
      session = fresh;
    }
    try {
      String end = fresh.run();
      LOG.log(System.Logger.Level.DEBUG, "client {0}: {1}", number, end);
    } catch (RuntimeException | Error e) {
      // One client's end is not the server's, whatever the reason.
      foul = true;
      tell(System.Logger.Level.ERROR, "client " + number, e);
    } finally {
      synchronized (this) {
        session = null;
      }
    }
  }

  /** Ends the connection of the client there is, and stops listening. Idempotent. */
  @Override
  public void close() {
    synchronized (this) {
      closed = true;
      if (session != null) {
        session.end("the server is closing");
      }
    }
    listener.close();
    boolean interrupted = false;
    while (thread.isAlive() && thread != Thread.currentThread()) {
      try {
        thread.join();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
