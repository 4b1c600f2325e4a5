package io.gpunvme.storage.injection;

import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;

/**
 * What a scenario does step by step: a step succeeds, or fails for the reason that was injected.
 */
public final class Attempt {
  private Attempt() {}

  /** One step. */
  public interface Step {
    /** Does it. */
    void run() throws Exception;
  }

  /**
   * Does a step.
   *
   * @return whether it succeeded
   * @throws AssertionError if it failed though nothing was injected into it, or by an error without
   *     a type
   */
  public static boolean succeeds(String what, Step step) {
    boolean before = Injector.fired();
    try {
      step.run();
      return true;
    } catch (Exception | Error e) {
      Throwable failure =
          (e instanceof ExecutionException || e instanceof CompletionException)
                  && e.getCause() != null
              ? e.getCause()
              : e;
      if (failure instanceof AssertionError || before || !Injector.fired() || !isTyped(failure)) {
        throw new AssertionError(
            what + (before ? " after the fault was over: " : ": ") + failure, failure);
      }
      return false;
    }
  }

  /** Does a step; one that does not succeed does the second time. */
  public static void twice(String what, Step step) {
    if (!succeeds(what, step)) {
      succeeds(what + " again", step);
    }
  }

  private static boolean isTyped(Throwable e) {
    return e == Injector.fault()
        || e.getCause() == Injector.fault()
        || e instanceof RejectedExecutionException
        || e.getClass().getName().startsWith("io.gpunvme.");
  }
}
