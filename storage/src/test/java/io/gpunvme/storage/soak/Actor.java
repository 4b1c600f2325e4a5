package io.gpunvme.storage.soak;

import io.gpunvme.storage.injection.Injector;
import java.util.SplittableRandom;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/** Who does one thing after the other in a thread of its own, and says which. */
abstract class Actor {
  final SplittableRandom random;
  final Tally tally;
  private final String name;
  private @Nullable Throwable lastFailure;
  private volatile long since;
  private volatile String doing = "";
  private volatile @Nullable Thread thread;

  Actor(String name, SplittableRandom random, Tally tally) {
    this.name = name;
    this.random = random;
    this.tally = tally;
  }

  /** What may fail. */
  interface Step {
    void run() throws Exception;
  }

  /** Does one thing. */
  abstract void act() throws Exception;

  /** What must not stay behind. */
  void end() throws Exception {}

  final void run(BooleanSupplier goesOn) throws Exception {
    thread = Thread.currentThread();
    try {
      while (goesOn.getAsBoolean()) {
        try {
          act();
        } catch (InterruptedException e) {
          tally.add("interrupted waits");
        }
        since = 0;
      }
    } finally {
      Thread.interrupted();
      end();
      since = 0;
    }
  }

  /** From here on it does that. */
  final void doing(String what) {
    doing = what;
    since = System.nanoTime();
  }

  /** For how long it has done what it does. */
  final long nanos() {
    long began = since;
    return began == 0 ? 0 : System.nanoTime() - began;
  }

  /** Whatever it does. */
  final void interruptThread() {
    Thread own = thread;
    if (own != null) {
      own.interrupt();
    }
  }

  /** Whether it succeeds; a failure has a type. */
  final boolean succeeds(String what, Step step) throws InterruptedException {
    doing(what);
    try {
      step.run();
      tally.add(what);
      return true;
    } catch (InterruptedException e) {
      throw e;
    } catch (Exception | Error e) {
      tally.add(what + " " + Failures.name(e));
      lastFailure = e;
      return false;
    }
  }

  /** What {@link #succeeds} has met last. */
  final @Nullable Throwable lastFailure() {
    return lastFailure;
  }

  /**
   * Does what may fail for want of something of the host's, but not always.
   *
   * @throws AssertionError if it fails again and again
   */
  static void untilItSucceeds(String what, Tally tally, Step step) {
    Throwable last = null;
    for (int i = 0; i < 8; i++) {
      try {
        step.run();
        return;
      } catch (Exception | Error e) {
        tally.add(what + " " + Failures.name(e));
        last = e;
      }
    }
    throw new AssertionError(what + " fails always: " + last, last);
  }

  /** For what is no part of the soak. */
  static void look(Runnable action) {
    Injector.look(action);
  }

  /** Between the two, each order of magnitude as likely as the others. */
  final int between(int least, int most) {
    return (int) Math.round(least * Math.pow((double) most / least, random.nextDouble()));
  }

  final boolean oneIn(int n) {
    return random.nextInt(n) == 0;
  }

  @Override
  public final String toString() {
    return name + ": " + doing;
  }
}
