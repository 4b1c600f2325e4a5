package io.gpunvme.base;

import java.time.Duration;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.function.BooleanSupplier;

/** Waits that an interrupt does not end. It is not lost: the thread is interrupted afterwards. */
public final class Uninterrupted {
  private Uninterrupted() {}

  /** Returns when a thread has ended; at once if it is the caller's, or was never started. */
  public static void join(Thread thread) {
    join(thread, Duration.ofNanos(Long.MAX_VALUE));
  }

  /** The same, but not later than in that time. */
  public static void join(Thread thread, Duration most) {
    if (thread == Thread.currentThread()) {
      return;
    }
    long start = System.nanoTime();
    long left = most.toNanos();
    boolean interrupted = false;
    while (thread.isAlive() && left > 0) {
      try {
        thread.join(Duration.ofNanos(left));
        left = most.toNanos() - (System.nanoTime() - start);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Takes one of what a semaphore has; false if there is none within that time. */
  public static boolean tryAcquire(Semaphore semaphore, long nanos) {
    long end = System.nanoTime() + nanos;
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return semaphore.tryAcquire(end - System.nanoTime(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /**
   * Waits for a condition; the caller has the monitor, and whoever makes it true calls {@code
   * notifyAll}.
   */
  public static void await(Object monitor, BooleanSupplier condition) {
    boolean interrupted = false;
    while (!condition.getAsBoolean()) {
      try {
        monitor.wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Waits for a signal, but not longer than that; the caller has the condition's lock. */
  public static void await(Condition condition, long nanos) {
    long end = System.nanoTime() + nanos;
    boolean interrupted = false;
    boolean over = false;
    while (!over) {
      try {
        condition.awaitNanos(end - System.nanoTime());
        over = true;
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
