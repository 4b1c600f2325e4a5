package io.gpunvme.models;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;

/** Waits for work that must end before its memory is let go of. */
final class Waiting {
  private Waiting() {}

  /**
   * Returns when it has ended, interrupted or not.
   *
   * @throws RuntimeException its failure
   */
  static void forEnd(Future<?> work) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          work.get();
          return;
        } catch (InterruptedException e) {
          interrupted = true;
        } catch (ExecutionException e) {
          if (e.getCause() instanceof RuntimeException cause) {
            throw cause;
          }
          throw new IllegalStateException(e.getCause());
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
