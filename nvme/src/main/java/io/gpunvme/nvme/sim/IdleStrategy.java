package io.gpunvme.nvme.sim;

import java.util.concurrent.locks.LockSupport;

/**
 * How a worker's thread waits when a pass found nothing to do: it spins, then yields, then sleeps,
 * the longer the longer nothing has happened. One thread.
 */
final class IdleStrategy {
  private static final long SPIN_NANOS = 20_000;
  private static final long YIELD_NANOS = 100_000;
  private static final long SHORTEST_SLEEP_NANOS = 2_000;
  private static final long LONGEST_SLEEP_NANOS = 256_000;

  /** Sleeps last this fraction of the quiet time, so that they delay nobody by much more. */
  private static final int SLEEP_DIVISOR = 64;

  /** What must happen sooner is waited for awake, for sleeping takes longer than asked. */
  private static final long WORTH_SLEEPING_NANOS = 200_000;

  private boolean quiet;
  private long quietSince;

  /** Something happened. */
  void busy() {
    quiet = false;
  }

  /**
   * Nothing happened: waits a little.
   *
   * @param now when the pass began
   * @param neededIn ns until something is due, {@link Long#MAX_VALUE} if nothing is
   */
  void rest(long now, long neededIn) {
    if (!quiet) {
      quiet = true;
      quietSince = now;
    }
    long quietFor = now - quietSince;
    if (quietFor < SPIN_NANOS) {
      Thread.onSpinWait();
    } else if (quietFor < YIELD_NANOS || neededIn < WORTH_SLEEPING_NANOS) {
      Thread.yield();
    } else {
      long sleep = Math.max(SHORTEST_SLEEP_NANOS, quietFor / SLEEP_DIVISOR);
      LockSupport.parkNanos(this, Math.min(sleep, LONGEST_SLEEP_NANOS));
    }
  }
}
