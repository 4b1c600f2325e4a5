package io.gpunvme.nvme.sim.serve;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.UnixListener;
import io.gpunvme.ffi.UnixSocket;
import io.gpunvme.nvme.InvalidRequestException;
import io.gpunvme.nvme.sim.SimulatedController;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Serves one embedded controller at a socket: one client at a time, others wait for their turn.
 *
 * <p>A client can make the controller reach only memory that it has given itself, as long as it is
 * connected. Whatever it does ends at worst its own connection. When it is gone, its memory is
 * unmapped, and the next one finds the controller as after power-on; what is in the namespaces
 * stays. Safe for all threads.
 */
public final class VfioUserServer implements AutoCloseable {
  /** How long a client may take to answer, and to take what it is sent. */
  static final Duration PATIENCE = Duration.ofSeconds(5);

  private static final System.Logger LOG = System.getLogger("io.gpunvme.nvme.sim.serve");

  private final SimulatedController controller;
  private final UnixListener listener;
  private final Thread thread;
  private final AtomicLong clients = new AtomicLong();
  private @Nullable ServerSession session;
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

  /** Where it listens. */
  public Path socket() {
    return listener.path();
  }

  /** How many clients have connected so far. */
  public long clients() {
    return clients.get();
  }

  /** Waits until this is closed. */
  public void await() throws InterruptedException {
    thread.join();
  }

  private void serve() {
    try {
      Optional<UnixSocket> next = listener.accept();
      while (next.isPresent()) {
        serve(next.get());
        next = listener.accept();
      }
    } catch (RuntimeException e) {
      LOG.log(System.Logger.Level.ERROR, "serving at " + listener.path() + " has ended", e);
    }
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
    } catch (RuntimeException e) {
      LOG.log(System.Logger.Level.ERROR, "client " + number, e);
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
