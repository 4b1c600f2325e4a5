package io.gpunvme.core.accel;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
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

  private final List<Runnable> waiting = new ArrayList<>();
  private long waitingBytes;
  private int running;
  private int wanted;
  private boolean freeing;

  /** A kernel is about to be launched. Waits for what is being freed. */
  synchronized KernelRun begin() {
    boolean interrupted = false;
    while (freeing || wanted > 0) {
      interrupted |= nap(PATIENCE_NANOS);
    }
    restore(interrupted);
    return join();
  }

  /**
   * A kernel has been launched by somebody else. Whoever looks after it must not wait here: what is
   * being freed may wait for it.
   */
  synchronized KernelRun join() {
    running++;
    AtomicBoolean over = new AtomicBoolean();
    return () -> {
      if (over.compareAndSet(false, true)) {
        end();
      }
    };
  }

  private void end() {
    synchronized (this) {
      running--;
      notifyAll();
      if (running > 0 || freeing || waiting.isEmpty()) {
        return;
      }
      freeing = true;
    }
    try {
      drain();
    } catch (RuntimeException e) {
      // The kernel is none of those whose memory this was.
    }
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
        awaitKernels();
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

  /** Takes memory when no kernel runs; frees what waits for that, too. */
  <T> T take(Supplier<T> memory) {
    synchronized (this) {
      // Also while others free: no kernel may start between their end and this.
      wanted++;
      awaitKernels();
      boolean interrupted = false;
      while (freeing) {
        interrupted |= nap(PATIENCE_NANOS);
      }
      restore(interrupted);
      wanted--;
      freeing = true;
    }
    try {
      return memory.get();
    } finally {
      drain();
    }
  }

  /** Keeps new kernels from starting, and waits for the end of those that run. */
  private void awaitKernels() {
    long begin = System.nanoTime();
    boolean interrupted = false;
    wanted++;
    while (running > 0 && System.nanoTime() - begin < PATIENCE_NANOS) {
      interrupted |= nap(PATIENCE_NANOS);
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
    RuntimeException failure = null;
    for (List<Runnable> some = takeWaiting(); !some.isEmpty(); some = takeWaiting()) {
      for (Runnable free : some) {
        try {
          free.run();
        } catch (RuntimeException e) {
          if (failure == null) {
            failure = e;
          } else {
            failure.addSuppressed(e);
          }
        }
      }
    }
    if (failure != null) {
      throw failure;
    }
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
