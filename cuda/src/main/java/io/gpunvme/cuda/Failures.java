package io.gpunvme.cuda;

import org.jspecify.annotations.Nullable;

/** Errors of several steps that are all taken, whichever fail. */
final class Failures {
  private @Nullable RuntimeException first;

  void collect(Runnable step) {
    try {
      step.run();
    } catch (RuntimeException e) {
      if (first == null) {
        first = e;
      } else {
        first.addSuppressed(e);
      }
    }
  }

  /** {@code e} with what was collected as its suppressed errors. */
  RuntimeException addTo(RuntimeException e) {
    if (first != null) {
      e.addSuppressed(first);
    }
    return e;
  }

  /** When the driver or the context is gone already, what was in it is gone too. */
  void throwFirstUnlessGone() {
    if (first != null && !isGone(first)) {
      throw first;
    }
  }

  private static boolean isGone(RuntimeException e) {
    return e instanceof CudaException cuda
        && (cuda.code() == CudaException.DEINITIALIZED
            || cuda.code() == CudaException.CONTEXT_IS_DESTROYED);
  }
}
