package io.gpunvme.gpu.watch;

import io.gpunvme.base.CloseAll;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.ffi.UnixListener;
import io.gpunvme.ffi.UnixSocket;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * A thread that gives a text to whoever connects to this process's socket: connect, read to the
 * end, done. It opens nothing before a while has passed, so that short programs pay for a thread
 * and no more. Safe for all threads.
 */
final class WatchServer implements AutoCloseable {
  /** Who reads more slowly has to ask again. */
  private static final Duration PATIENCE = Duration.ofSeconds(1);

  private static final Duration DELAY = Duration.ofMillis(500);
  private static final long RETRY_MILLIS = 100;

  private final Supplier<String> text;
  private final List<RunFolder> folders;
  private final long delayNanos;

  /** Guarded by this. */
  private boolean closed;

  /** Guarded by this. */
  private @Nullable Place place;

  /** Removes the socket of a process that ends with controllers open; guarded by this. */
  private @Nullable Thread hook;

  /** Where it listens. Closing it leaves nothing there. */
  private record Place(UnixListener listener, RunFolder folder) implements AutoCloseable {
    @Override
    public void close() {
      listener.close();
      folder.removeIfEmpty();
    }
  }

  private WatchServer(Supplier<String> text, List<RunFolder> folders, Duration delay) {
    this.text = text;
    this.folders = folders;
    this.delayNanos = delay.toNanos();
  }

  /** Answers soon, unless it is closed before. */
  static WatchServer start(Supplier<String> text) {
    return start(text, List.of(), DELAY);
  }

  /**
   * @param folders the first that can be used has the socket; none: those of the host
   */
  static WatchServer start(Supplier<String> text, List<RunFolder> folders, Duration delay) {
    WatchServer server = new WatchServer(text, folders, delay);
    Thread.ofPlatform().daemon().name("gpunvme-watch").start(server::run);
    return server;
  }

  private void run() {
    try {
      if (sleeps(delayNanos)) {
        Optional<UnixListener> listener = open();
        if (listener.isPresent()) {
          serve(listener.get());
        }
      }
    } catch (Throwable e) {
      // Nobody but the watchers misses it.
      Watch.missed("this process", e);
      close();
    }
  }

  /** Waits; false if this is closed meanwhile. */
  private synchronized boolean sleeps(long nanos) throws InterruptedException {
    long end = System.nanoTime() + nanos;
    for (long left = nanos; !closed && left > 0; left = end - System.nanoTime()) {
      TimeUnit.NANOSECONDS.timedWait(this, left);
    }
    return !closed;
  }

  /**
   * Makes the socket, unless this is closed or the process ends. Whoever closes this waits for it:
   * a process that ended in between would leave the folder, or the socket, behind.
   */
  private synchronized Optional<UnixListener> open() throws IOException {
    if (closed) {
      return Optional.empty();
    }
    // First, since nobody would remove what is made before a process ends that has no hook yet.
    hook = Thread.ofPlatform().name("gpunvme-watch-end").unstarted(this::close);
    try {
      Runtime.getRuntime().addShutdownHook(hook);
    } catch (IllegalStateException e) {
      // The process is ending.
      return Optional.empty();
    }
    Place made = listen();
    place = made;
    return Optional.of(made.listener());
  }

  private Place listen() throws IOException {
    IOException failure = new IOException("no folder for the sockets of this user");
    for (RunFolder folder : folders.isEmpty() ? RunFolder.all() : folders) {
      try {
        return new Place(folder.listen(ProcessHandle.current().pid()), folder);
      } catch (IOException | PosixException | UncheckedIOException | IllegalArgumentException e) {
        failure.addSuppressed(e);
      }
    }
    throw failure;
  }

  private void serve(UnixListener open) throws InterruptedException {
    boolean more = true;
    while (more) {
      try {
        Optional<UnixSocket> client = open.accept();
        client.ifPresent(this::answer);
        more = client.isPresent();
      } catch (PosixException e) {
        // The system is short of something, and the watcher waits in the socket.
        more = sleeps(TimeUnit.MILLISECONDS.toNanos(RETRY_MILLIS));
      }
    }
  }

  private void answer(UnixSocket client) {
    try (client;
        Arena arena = Arena.ofConfined()) {
      client.sendTimeout(PATIENCE);
      byte[] bytes = text.get().getBytes(StandardCharsets.UTF_8);
      MemorySegment all = arena.allocateFrom(ValueLayout.JAVA_BYTE, bytes);
      client.send(all);
    } catch (RuntimeException e) {
      // This watcher has gone, or does not read; the next one may.
      Watch.missed("this process at this moment", e);
    }
  }

  /**
   * Stops and removes the socket, and the folder after the last one; waits for one that is being
   * made. Idempotent.
   */
  @Override
  public void close() {
    Place open;
    Thread atExit;
    synchronized (this) {
      closed = true;
      open = place;
      atExit = hook;
      place = null;
      hook = null;
      notifyAll();
    }
    CloseAll.all(
        open,
        () -> {
          if (atExit != null) {
            forget(atExit);
          }
        });
  }

  private static void forget(Thread hook) {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // The process is ending: the hook has run, or runs now.
    }
  }
}
