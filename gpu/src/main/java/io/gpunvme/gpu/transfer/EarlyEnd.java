package io.gpunvme.gpu.transfer;

import io.gpunvme.nvme.CommandAbortedException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Whether a transfer ends before all is moved, and why: its first failure, an interrupt, or a
 * listener that says so. Safe for all threads.
 */
abstract class EarlyEnd {
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();

  /** Who is told of progress, and asked whether to go on. */
  abstract TransferListener listener();

  /** Tells the listener; if it fails, so does the transfer. */
  final void moved(long more) {
    try {
      listener().moved(more);
    } catch (Throwable e) {
      // Whoever moves must come to an end before anybody hears of it.
      fail(e);
    }
  }

  /** Tells the listener of a command; if it fails, so does the transfer. */
  final void completed(int command, long nanos) {
    try {
      listener().completed(command, nanos);
    } catch (Throwable e) {
      fail(e);
    }
  }

  /** Something failed for good. */
  public final void fail(Throwable e) {
    if (!failure.compareAndSet(null, e)) {
      Throwable first = failure.get();
      if (first != null && first != e) {
        first.addSuppressed(e);
      }
    }
  }

  /** The thread that waits for the transfer was interrupted. */
  final void cancel() {
    failure.compareAndSet(
        null, new CommandAbortedException("the transfer was cancelled by an interrupt"));
  }

  final void cancelIfAsked() {
    if (listener().isCancelled()) {
      failure.compareAndSet(null, new CommandAbortedException("the transfer was cancelled"));
    }
  }

  final boolean failed() {
    return failure.get() != null;
  }

  final void throwIfFailed() {
    switch (failure.get()) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      case Throwable e -> throw new IllegalStateException(e);
    }
  }

  /** Forgets the failure, for a transfer to come. */
  final void restart() {
    if (failed()) {
      failure.set(null);
    }
  }
}
