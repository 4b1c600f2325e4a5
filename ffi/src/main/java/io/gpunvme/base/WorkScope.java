package io.gpunvme.base;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Work that a thread shares with others and does not leave before all of it is over, whatever
 * fails: a part, the start of a thread, memory for an exception. So what the parts use is at rest
 * when {@link #finish} returns.
 *
 * <p>For one thread, which opens it, shares out, and finishes it however it leaves.
 */
public final class WorkScope {
  private static final long NAP_NANOS = 10_000_000;

  private final Executor threads;

  /** Of the one thread. */
  private final List<Part> parts = new ArrayList<>();

  /** One for each part that is over. */
  private final Semaphore ends = new Semaphore(0);

  /** Guarded by this. */
  private final List<Throwable> failures = new ArrayList<>();

  /**
   * Nothing is shared out yet.
   *
   * @param threads may refuse work, do it late, or do it in the caller's thread
   */
  public WorkScope(Executor threads) {
    this.threads = threads;
  }

  /** What one thread does. */
  private final class Part implements Runnable {
    private final Runnable work;
    private final boolean needed;

    private final AtomicBoolean taken = new AtomicBoolean();

    Part(Runnable work, boolean needed) {
      this.work = work;
      this.needed = needed;
    }

    @Override
    public void run() {
      if (taken.compareAndSet(false, true)) {
        try {
          attempt(work);
        } finally {
          ends.release();
        }
      }
    }

    /** By the one thread, which has nothing else to do. */
    void settle() {
      if (needed) {
        run();
      } else if (taken.compareAndSet(false, true)) {
        ends.release();
      }
    }
  }

  private void attempt(Runnable work) {
    try {
      work.run();
    } catch (Throwable e) {
      failed(e);
    }
  }

  private synchronized void failed(Throwable e) {
    failures.add(e);
  }

  /** Hands a part to another thread. If there is none, {@link #finish} does it. */
  public void fork(Runnable work) {
    begin(new Part(work, true));
  }

  /** The same for a part that is not needed: if nobody has begun it by then, nobody does it. */
  public void help(Runnable work) {
    begin(new Part(work, false));
  }

  private void begin(Part part) {
    parts.add(part);
    try {
      threads.execute(part);
    } catch (RuntimeException | Error e) {
      // Also an OutOfMemoryError, by which the virtual machine says that the system has no thread.
    }
  }

  /**
   * Does a part in this thread, then those that nobody has begun, and returns when all are over.
   *
   * @param meanwhile done now and then while this waits
   * @param interrupted done when the thread is interrupted while it waits; the interrupt is kept
   * @return what parts, and these two, failed with, in the order in which it was noticed
   */
  public List<Throwable> finish(Runnable own, Runnable meanwhile, Runnable interrupted) {
    attempt(own);
    for (int i = 0; i < parts.size(); i++) {
      parts.get(i).settle();
    }
    boolean wasInterrupted = false;
    int over = 0;
    while (over < parts.size()) {
      try {
        if (ends.tryAcquire(NAP_NANOS, TimeUnit.NANOSECONDS)) {
          over++;
        } else {
          attempt(meanwhile);
        }
      } catch (InterruptedException e) {
        wasInterrupted = true;
        attempt(interrupted);
      }
    }
    if (wasInterrupted) {
      Thread.currentThread().interrupt();
    }
    synchronized (this) {
      return List.copyOf(failures);
    }
  }

  /**
   * Does all parts, the first in the caller's thread, and returns when all are over.
   *
   * @param parts at least one
   * @param meanwhile as for {@link #finish}
   * @return as {@link #finish}
   */
  public static List<Throwable> all(Executor threads, List<Runnable> parts, Runnable meanwhile) {
    WorkScope scope = new WorkScope(threads);
    Runnable first =
        () -> {
          parts.subList(1, parts.size()).forEach(scope::fork);
          parts.getFirst().run();
        };
    return scope.finish(first, meanwhile, () -> {});
  }

  /** Throws the first of these, with the others suppressed; nothing if there is none. */
  public static void rethrow(List<Throwable> failures) {
    CloseAll steps = new CloseAll();
    for (Throwable e : failures) {
      steps.run(
          () -> {
            switch (e) {
              case RuntimeException unchecked -> throw unchecked;
              case Error error -> throw error;
              default -> throw new IllegalStateException(e);
            }
          });
    }
    steps.<RuntimeException>end();
  }
}
