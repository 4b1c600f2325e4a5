package io.gpunvme.gpu.accel;

import io.gpunvme.base.CloseAll;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * Takes and frees memory of a GPU when no kernel runs that waits for an SSD of this process. The
 * driver waits for kernels before it frees, and often before it allocates (seen: {@code cuMemFree},
 * {@code cuMemAlloc} and {@code cuMemHostAlloc} of driver 580 with an H200, 3 s and more), and lets
 * nobody else start a copy meanwhile; an embedded controller could then not bring the data that the
 * kernel waits for, and both would wait. Safe for all threads.
 */
final class KernelPauses {
  /** What waits to be freed at most; more is waited for. */
  private static final long MOST_BYTES = 64 << 20;

  /** A kernel that does not end by then may never do. */
  private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(10);

  /** How often a thread asks that waits for a kernel of its own. */
  private static final long ASKS_NANOS = TimeUnit.MICROSECONDS.toNanos(500);

  private final List<Runnable> waiting = new ArrayList<>();
  private long waitingBytes;

  /** Kernels that run and can be asked whether they are over. */
  private final List<Run> asked = new ArrayList<>();

  private int running;
  private int wanted;
  private boolean freeing;

  /**
   * A kernel is about to be launched. Waits for what is being freed.
   *
   * @param over whether the kernel, once it is launched, is over. Asked when this thread itself
   *     waits for kernels: then it cannot see to the end of its own
   */
  synchronized KernelRun begin(BooleanSupplier over) {
    boolean interrupted = false;
    while (freeing || wanted > 0) {
      interrupted |= nap(PATIENCE_NANOS);
    }
    restore(interrupted);
    Run run = new Run(over);
    asked.add(run);
    running++;
    return run;
  }

  /**
   * A kernel has been launched by somebody else. Whoever looks after it must not wait here: what is
   * being freed may wait for it.
   */
  synchronized KernelRun join() {
    running++;
    return new Run(() -> false);
  }

  /** A kernel from its launch to its end. */
  private final class Run implements KernelRun {
    private final Thread owner = Thread.currentThread();
    private final BooleanSupplier over;

    /** Guarded by the pauses. */
    private boolean ended;

    Run(BooleanSupplier over) {
      this.over = over;
    }

    boolean isMineAndOver() {
      if (owner != Thread.currentThread()) {
        return false;
      }
      try {
        return over.getAsBoolean();
      } catch (RuntimeException e) {
        // It has failed, as its owner will be told by asking again.
        return true;
      }
    }

    @Override
    public void close() {
      synchronized (KernelPauses.this) {
        end(this);
        if (running > 0 || freeing || waiting.isEmpty()) {
          return;
        }
        freeing = true;
      }
      drainQuietly();
    }
  }

  private synchronized void end(Run run) {
    if (!run.ended) {
      run.ended = true;
      asked.remove(run);
      running--;
      notifyAll();
    }
  }

  /** Those of this thread; whether there are any left. What waits is freed by who waits. */
  private synchronized boolean endMine() {
    for (Run run : List.copyOf(asked)) {
      if (run.isMineAndOver()) {
        end(run);
      }
    }
    return asked.stream().anyMatch(run -> run.owner == Thread.currentThread());
  }

  /**
   * Frees now if no kernel runs, else later; waits for the kernels if there is much to be freed.
   *
   * @param bytes of memory
   * @param free what it throws reaches whoever frees, unless that is a kernel's end
   */
  void free(long bytes, Runnable free) {
    synchronized (this) {
      waiting.add(free);
      waitingBytes += bytes;
      if (running > 0 && waitingBytes > MOST_BYTES) {
        awaitKernels(PATIENCE_NANOS);
      }
      // Whoever frees now takes this along, or the last kernel does.
      if (freeing || (running > 0 && waitingBytes <= MOST_BYTES)) {
        return;
      }
      freeing = true;
    }
    drain();
  }

  /** The same without waiting, for threads that a kernel waits for. */
  void later(long bytes, Runnable free) {
    synchronized (this) {
      waiting.add(free);
      waitingBytes += bytes;
      if (freeing || running > 0) {
        return;
      }
      freeing = true;
    }
    drain();
  }

  /** Frees before this returns, when no kernel runs: the owner of the memory relies on it. */
  void now(Runnable free) {
    Supplier<Boolean> freed =
        () -> {
          free.run();
          return true;
        };
    take(freed);
  }

  /**
   * Takes memory when no kernel runs, or after 10 s; frees what waits for that, too. Whoever holds
   * this up holds up new kernels: the memory should be all that is needed.
   */
  <T> T take(Supplier<T> memory) {
    pause(PATIENCE_NANOS, true);
    try {
      return memory.get();
    } finally {
      drainQuietly();
    }
  }

  /**
   * The same, but not beside a kernel.
   *
   * @param nanos how long kernels are waited for
   * @return whether it was taken
   */
  boolean tryTake(long nanos, Runnable memory) {
    if (!pause(nanos, false)) {
      return false;
    }
    try {
      memory.run();
      return true;
    } finally {
      drainQuietly();
    }
  }

  /**
   * Begins a pause, which draining ends.
   *
   * @param nanos how long kernels are waited for
   * @param always whether it begins also beside kernels that run for longer
   * @return whether it has begun
   */
  private synchronized boolean pause(long nanos, boolean always) {
    // Also while others free: no kernel may start between their end and this.
    wanted++;
    awaitKernels(nanos);
    boolean interrupted = false;
    while (freeing) {
      interrupted |= nap(nanos);
    }
    restore(interrupted);
    wanted--;
    if (running > 0 && !always) {
      notifyAll();
      return false;
    }
    freeing = true;
    return true;
  }

  /** What others wanted freed is none of the caller's business, nor is what became of it. */
  private void drainQuietly() {
    try {
      drain();
    } catch (RuntimeException | Error e) {
      // The owners of that memory have let go of it.
    }
  }

  /** Keeps new kernels from starting, and waits for the end of those that run. */
  private void awaitKernels(long nanos) {
    long begin = System.nanoTime();
    boolean interrupted = false;
    wanted++;
    while (running > 0 && System.nanoTime() - begin < nanos) {
      boolean mine = endMine();
      if (running > 0) {
        interrupted |= nap(mine ? Math.min(nanos, ASKS_NANOS) : nanos);
      }
    }
    wanted--;
    notifyAll();
    restore(interrupted);
  }

  private boolean nap(long nanos) {
    try {
      TimeUnit.NANOSECONDS.timedWait(this, nanos);
      return false;
    } catch (InterruptedException e) {
      return true;
    }
  }

  private static void restore(boolean interrupted) {
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * Only one thread does it at a time; kernels start when it is over, whatever fails: the first
   * failure is thrown at the end.
   */
  private void drain() {
    CloseAll steps = new CloseAll();
    for (List<Runnable> some = takeWaiting(); !some.isEmpty(); some = takeWaiting()) {
      for (Runnable free : some) {
        steps.run(free::run);
      }
    }
    steps.<RuntimeException>end();
  }

  private synchronized List<Runnable> takeWaiting() {
    List<Runnable> some = List.copyOf(waiting);
    waiting.clear();
    waitingBytes = 0;
    if (some.isEmpty()) {
      freeing = false;
      notifyAll();
    }
    return some;
  }
}
