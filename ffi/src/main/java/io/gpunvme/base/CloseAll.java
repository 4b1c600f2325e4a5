package io.gpunvme.base;

import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Runs several steps, even if some fail, and throws the first failure at the end, with the others
 * as suppressed exceptions. For closing things that were opened together. For one thread.
 */
public final class CloseAll {
  private @Nullable Throwable first;

  /** Nothing has failed yet. */
  public CloseAll() {}

  /**
   * A step that may fail.
   *
   * @param <E> the checked exception that it may throw
   */
  @FunctionalInterface
  public interface Step<E extends Exception> {
    void run() throws E;
  }

  /**
   * An action on each of several things.
   *
   * @param <T> the type of the things
   * @param <E> the checked exception that it may throw
   */
  @FunctionalInterface
  public interface Action<T, E extends Exception> {
    void accept(T one) throws E;
  }

  /** Runs the action on each of them, in order, and throws the first failure at the end. */
  public static <T, E extends Exception> void each(Iterable<T> all, Action<? super T, E> action)
      throws E {
    CloseAll steps = new CloseAll();
    for (T one : all) {
      steps.run(() -> action.accept(one));
    }
    steps.<E>end();
  }

  /**
   * Closes things in their order.
   *
   * @param opened null for what was not opened
   * @throws IllegalStateException with the cause, if the first failure is a checked exception
   */
  public static void all(@Nullable AutoCloseable... opened) {
    CloseAll steps = new CloseAll();
    for (AutoCloseable one : opened) {
      if (one != null) {
        steps.run(one::close);
      }
    }
    steps.endUnchecked();
  }

  /**
   * Closes things in the reverse order of the list, and empties the list.
   *
   * @throws IllegalStateException with the cause, if the first failure is a checked exception
   */
  public static void newestFirst(List<? extends AutoCloseable> opened) {
    CloseAll steps = new CloseAll();
    opened.reversed().forEach(one -> steps.run(one::close));
    opened.clear();
    steps.endUnchecked();
  }

  /** Cleans up after {@code failure}: new failures are added to it as suppressed exceptions. */
  public static <T> void after(
      Throwable failure, Iterable<T> all, Action<? super T, ? extends Exception> action) {
    CloseAll steps = new CloseAll();
    steps.first = failure;
    for (T one : all) {
      steps.run(() -> action.accept(one));
    }
  }

  /** Cleans up after {@code failure} by one step. */
  public static void after(Throwable failure, Step<? extends Exception> step) {
    CloseAll steps = new CloseAll();
    steps.first = failure;
    steps.run(step);
  }

  /**
   * Makes what is to own something that is open already.
   *
   * @param close closes that, if nothing could be made
   */
  public static <T> T orClose(Supplier<T> make, Step<? extends Exception> close) {
    try {
      return make.get();
    } catch (RuntimeException | Error e) {
      after(e, close);
      throw e;
    }
  }

  /** Runs a step and keeps its failure. */
  public void run(Step<? extends Exception> step) {
    try {
      step.run();
    } catch (Throwable e) { // also an Error must not leave the rest open
      if (first == null) {
        first = e;
      } else if (first != e) {
        first.addSuppressed(e);
      }
    }
  }

  /** The first failure so far, or null. */
  public @Nullable Throwable failure() {
    return first;
  }

  /**
   * Throws the first failure, if there is one.
   *
   * @param <E> the checked exception that the steps may throw
   */
  @SuppressWarnings("unchecked") // steps throw E, or what is unchecked
  public <E extends Exception> void end() throws E {
    switch (first) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      default -> throw (E) first;
    }
  }

  private void endUnchecked() {
    try {
      end();
    } catch (RuntimeException e) {
      throw e;
    } catch (Exception e) {
      throw new IllegalStateException(e);
    }
  }
}
