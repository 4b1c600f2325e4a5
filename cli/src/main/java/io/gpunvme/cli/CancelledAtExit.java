package io.gpunvme.cli;

import org.jspecify.annotations.Nullable;

/** Work that is cancelled when the process is told to end. */
final class CancelledAtExit implements AutoCloseable {
  private final Thread hook = Thread.ofPlatform().unstarted(this::stop);
  private @Nullable Runnable cancel;
  private boolean stopped;

  CancelledAtExit() {
    Runtime.getRuntime().addShutdownHook(hook);
  }

  /** From now on, cancels this. */
  synchronized void now(Runnable other) {
    cancel = other;
    if (stopped) {
      other.run();
    }
  }

  private synchronized void stop() {
    Ending.begin();
    stopped = true;
    Runnable running = cancel;
    if (running != null) {
      running.run();
    }
  }

  /** The work is over. */
  @Override
  public void close() {
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException e) {
      // The process is ending: the hook has run, or runs now.
    }
  }
}
