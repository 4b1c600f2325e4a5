package io.gpunvme.capi;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Transfers that go on at the same time, as one: it is over when all of them are, and fails with
 * the first failure, which ends the others. Safe for all threads.
 */
final class SeveralTransfers extends CompletableFuture<Void> {
  private final List<CompletableFuture<?>> parts;

  /**
   * @param parts each completes when nothing is at work in its memory any more
   */
  SeveralTransfers(List<CompletableFuture<?>> parts) {
    this.parts = List.copyOf(parts);
    AtomicReference<@Nullable Throwable> first = new AtomicReference<>();
    for (CompletableFuture<?> part : parts) {
      var _ =
          part.whenComplete(
              (_, failure) -> {
                if (failure != null && first.compareAndSet(null, failure)) {
                  cancelAll();
                }
              });
    }
    var _ =
        CompletableFuture.allOf(this.parts.toArray(CompletableFuture<?>[]::new))
            .whenComplete((_, failure) -> end(failure, first.get()));
  }

  /**
   * All are over.
   *
   * @param failure of one of them; null if none failed
   * @param first null also if nobody has been told of it yet
   */
  private void end(@Nullable Throwable failure, @Nullable Throwable first) {
    if (failure == null) {
      complete(null);
    } else {
      completeExceptionally(cause(first == null ? failure : first));
    }
  }

  private static Throwable cause(Throwable failure) {
    Throwable cause = failure instanceof CompletionException ? failure.getCause() : null;
    return cause == null ? failure : cause;
  }

  private void cancelAll() {
    parts.forEach(part -> part.cancel(true));
  }

  /**
   * Asks all of them to end early; it completes when nothing is at work in their memory any more.
   *
   * @return whether some were still going on
   */
  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    cancelAll();
    return !isDone();
  }

  /** Ends them, and waits until they are over. */
  void end() {
    cancelAll();
    handle((_, _) -> true).join();
  }
}
