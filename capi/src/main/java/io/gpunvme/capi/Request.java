package io.gpunvme.capi;

import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** A transfer that goes on by itself. Safe for all threads. Closing it cancels and waits. */
final class Request implements AutoCloseable {
  private final CompletableFuture<?> transfer;

  /** Over when the transfer is, and its memory has been let go of. */
  private final CompletableFuture<?> all;

  private final BooleanSupplier storageClosed;

  /**
   * @param transfer completes when nothing is at work in its memory any more
   * @param release run when it is over
   * @param storageClosed whether its storage was closed, so that what failed was ended by that
   */
  Request(CompletableFuture<?> transfer, Runnable release, BooleanSupplier storageClosed) {
    this.transfer = transfer;
    this.storageClosed = storageClosed;
    all = transfer.whenComplete((_, _) -> release.run());
  }

  /**
   * Waits.
   *
   * @param nanos at most, unsigned
   * @return whether it is over
   * @throws Throwable what it failed with
   */
  boolean await(long nanos) throws Throwable {
    try {
      if (nanos < 0) {
        all.get();
      } else {
        all.get(nanos, TimeUnit.NANOSECONDS);
      }
      return true;
    } catch (TimeoutException e) {
      return false;
    } catch (ExecutionException e) {
      throw why(e.getCause() == null ? e : e.getCause());
    }
  }

  private Throwable why(Throwable thrown) {
    Throwable cause =
        thrown instanceof CompletionException && thrown.getCause() != null
            ? thrown.getCause()
            : thrown;
    boolean ended = cause instanceof CancellationException;
    if (ended || cause instanceof IllegalStateException && storageClosed.getAsBoolean()) {
      return new StorageException(
          Kind.CANCELLED,
          "the transfer",
          -1,
          -1,
          ended ? "was cancelled" : "was ended, as its storage was closed",
          cause);
    }
    return cause;
  }

  boolean isOver() {
    return all.isDone();
  }

  /** Waits until it is over, however it ends. */
  void awaitOver() {
    all.handle((_, _) -> true).join();
  }

  /** Why it failed; null if it did not, or goes on. */
  @Nullable Throwable failure() {
    return all.isCompletedExceptionally() ? why(all.exceptionNow()) : null;
  }

  void cancel() {
    transfer.cancel(true);
  }

  @Override
  public void close() {
    cancel();
    awaitOver();
  }
}
