package io.gpunvme.base;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Takes several steps, whichever of them fail, and throws the first failure at the end; the others
 * are suppressed under it. For closing what was opened together. For one thread.
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
   * What is done with each of several things.
   *
   * @param <T> what they are
   * @param <E> the checked exception that it may throw
   */
  @FunctionalInterface
  public interface Action<T, E extends Exception> {
    void accept(T one) throws E;
  }

  /** Does it with each of them, in their order; the first failure is thrown at the end. */
  public static <T, E extends Exception> void each(Iterable<T> all, Action<? super T, E> action)
      throws E {
    CloseAll steps = new CloseAll();
    for (T one : all) {
      steps.run(() -> action.accept(one));
    }
    steps.<E>end();
  }

  /**
   * Closes each that is there, in their order.
   *
   * @param opened null: was not opened
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
   * Closes what was opened one after the other, the last first, and empties the list.
   *
   * @throws IllegalStateException with the cause, if the first failure is a checked exception
   */
  public static void newestFirst(List<? extends AutoCloseable> opened) {
    CloseAll steps = new CloseAll();
    opened.reversed().forEach(one -> steps.run(one::close));
    opened.clear();
    steps.endUnchecked();
  }

  /** Cleans up after {@code failure}: what fails now is suppressed under it. */
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

  /** Takes a step and keeps its failure. */
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
