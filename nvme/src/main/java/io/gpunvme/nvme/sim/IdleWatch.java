package io.gpunvme.nvme.sim;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Lets the workers of a quiet controller sleep while one of them, worker 0, looks at everybody's
 * doorbells: waking up is what a quiet worker costs, and one that wakes up is enough.
 */
final class IdleWatch {
  /** While worker 0 is busy it looks this often, ns. */
  private static final long INTERVAL_NANOS = 20_000;

  private final Worker[] workers;
  private final AtomicInteger sleepers = new AtomicInteger();
  private long looked;

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
}
