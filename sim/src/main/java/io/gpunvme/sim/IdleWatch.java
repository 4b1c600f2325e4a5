package io.gpunvme.sim;

import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Lets the workers of a quiet controller sleep while one of them, worker 0, looks at everybody's
 * doorbells: waking up is what a quiet worker costs, and one that wakes up is enough. With a host
 * that wakes it ({@link SharedSleep}) worker 0 sleeps too.
 */
final class IdleWatch {
  /** While worker 0 is busy it looks this often, ns. */
  private static final long INTERVAL_NANOS = 20_000;

  private final Worker[] workers;
  private final AtomicInteger sleepers = new AtomicInteger();
  private long looked;

  /** Where worker 0 sleeps; guarded by this. */
  private @Nullable SharedSleep bed;

  /** Whether it is there now; guarded by this. */
  private boolean lying;

  // Written under the monitor.
  private volatile boolean prepared;

  /**
   * @param workers all of them; filled by whoever makes this
   */
  IdleWatch(Worker[] workers) {
    this.workers = workers;
  }

  /** By the thread of a worker that is not worker 0: sleeps until it is needed, or for a while. */
  void sleep(Worker worker) {
    sleepers.incrementAndGet();
    worker.asleep(true);
    try {
      // A doorbell that rang before worker 0 could know of the sleeper.
      if (!worker.isRung()) {
        worker.park();
      }
    } finally {
      worker.asleep(false);
      sleepers.decrementAndGet();
    }
  }

  /**
   * By worker 0's thread after each pass: wakes those whose doorbells rang.
   *
   * @param now when the pass began
   */
  void look(long now) {
    if (sleepers.get() == 0 || now - looked < INTERVAL_NANOS) {
      return;
    }
    looked = now;
    for (int i = 1; i < workers.length; i++) {
      Worker w = workers[i];
      if (w.isAsleep() && w.isRung()) {
        w.wake();
      }
    }
  }

  // ---- worker 0

  /** Where worker 0 may sleep from now on; null: nowhere. Returns when it has left the last one. */
  synchronized void bed(@Nullable SharedSleep fresh) {
    boolean interrupted = false;
    while (lying) {
      wake();
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    bed = fresh;
    prepared = fresh != null;
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /**
   * By worker 0's thread when nothing has happened for long and nothing is due: sleeps until it is
   * woken, or for a while.
   *
   * @param mayStay whether nothing has happened meanwhile that this does not know of
   */
  Sleep sleepUntilWoken(BooleanSupplier mayStay) {
    // Hosts wake nobody when they free entries of a completion queue.
    if (!prepared || !othersSleep() || any(Worker::holdsBack)) {
      return Sleep.NONE;
    }
    SharedSleep there = lieDown();
    if (there == null) {
      return Sleep.NONE;
    }
    try {
      // A doorbell that rang before the host could know that we sleep.
      boolean stay = mayStay.getAsBoolean() && !any(Worker::isRung);
      return stay && !there.await(Worker.LONGEST_SLEEP_NANOS) ? Sleep.OVER : Sleep.WOKEN;
    } finally {
      getUp(there);
    }
  }

  /** What became of a wish to sleep. */
  enum Sleep {
    /** It was not allowed. */
    NONE,
    /** Nobody has disturbed it. */
    OVER,
    /** Somebody has rung, or has done something else. */
    WOKEN
  }

  private boolean othersSleep() {
    return Arrays.stream(workers).skip(1).allMatch(Worker::isAsleep);
  }

  private boolean any(Predicate<Worker> is) {
    return Arrays.stream(workers).anyMatch(is);
  }

  private synchronized @Nullable SharedSleep lieDown() {
    SharedSleep there = bed;
    lying = there != null && there.lieDown();
    return lying ? there : null;
  }

  private synchronized void getUp(SharedSleep there) {
    there.getUp();
    lying = false;
    notifyAll();
  }

  /** Worker 0 has something to do, or somebody whom it watches. By any thread. */
  void wake() {
    if (prepared) {
      synchronized (this) {
        if (lying && bed != null) {
          bed.wake();
        }
      }
    }
  }
}
