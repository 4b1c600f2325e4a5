package io.gpunvme.storage.soak;

import io.gpunvme.storage.path.StorageException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;

/** Which failures are as they should be: those that have a type, whatever it was that failed. */
final class Failures {
  private static final String OURS = "io.gpunvme.";
  private static final String INJECTED = "(injected)";

  private Failures() {}

  /**
   * A name for it.
   *
   * @throws AssertionError if it has no type
   */
  static String name(Throwable e) {
    if ((e instanceof ExecutionException || e instanceof CompletionException)
        && e.getCause() != null) {
      return name(e.getCause());
    }
    if (e instanceof StorageException s) {
      return s.kind().name();
    }
    if (e instanceof AssertionError own) {
      throw own;
    }
    boolean typed =
        e.getClass().getName().startsWith(OURS)
            || e instanceof RejectedExecutionException
            || isInjected(e);
    if (!typed) {
      throw new AssertionError("a failure without a type: " + e, e);
    }
    return e.getClass().getSimpleName();
  }

  private static boolean isInjected(Throwable e) {
    return String.valueOf(e.getMessage()).contains(INJECTED)
        || (e.getCause() != null && isInjected(e.getCause()));
  }
}
