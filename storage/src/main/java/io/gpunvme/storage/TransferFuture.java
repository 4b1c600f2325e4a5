package io.gpunvme.storage;

import io.gpunvme.storage.path.PathCall;
import java.util.concurrent.CompletableFuture;

/**
 * A transfer that goes on by itself. {@link #cancel} asks it to end; it is over when it says so.
 */
final class TransferFuture extends CompletableFuture<TransferResult> {
  private final PathCall call;

  TransferFuture(PathCall call) {
    this.call = call;
  }

  /**
   * Asks the transfer to end early. It completes, with its result or with a {@code
   * StorageException} that says that it was cancelled, when nothing is at work in its buffer any
   * more.
   *
   * @return whether it was still going on
   */
  @Override
  public boolean cancel(boolean mayInterruptIfRunning) {
    call.cancel();
    return !isDone();
  }
}
