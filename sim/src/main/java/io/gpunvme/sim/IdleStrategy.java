package io.gpunvme.sim;

import java.util.concurrent.locks.LockSupport;

/**
 * How a worker's thread waits when a pass found nothing to do: it spins, then yields, then sleeps,
 * the longer the longer nothing has happened. One thread.
 *
 * <p>Nothing wakes it, since a doorbell is a store to memory ({@link SharedSleep} is for hosts that
 * can do more). So the first command after a quiet time waits for a sleep to end, and sleeps are
 * short beside the quiet time before them.
 */
final class IdleStrategy {
  private static final long SPIN_NANOS = 20_000;
  private static final long YIELD_NANOS = 100_000;
  private static final long SHORTEST_SLEEP_NANOS = 2_000;

  /** Sleeps last this fraction of the quiet time, up to the limit. */
  private static final int SLEEP_DIVISOR = 64;

  private static final long LONGEST_SLEEP_NANOS = 256_000;

  /**
   * Those of a host that has gone away for longer: a smaller fraction, a higher limit. Waking up is
   * most of what an idle worker costs.
   */
  private static final int LONG_SLEEP_DIVISOR = 1024;

  private static final long LONGEST_LONG_SLEEP_NANOS = 700_000;

  /** Who has been away for so long can wait for the first command: 15 s, and then 2.5 ms. */
  private static final long VERY_LONG_NANOS = 15_000_000_000L;

  private static final long LONGEST_VERY_LONG_SLEEP_NANOS = 2_500_000;

  /** After so long a worker may sleep until it is woken. */
  private static final long LONG_NANOS = 50_000_000;

  /** Sleeping may take this much longer than asked; what is due must not wait for it. */
  private static final long OVERSLEPT_NANOS = 100_000;

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
      return;
    }
    long sleep = sleepNanos(quietFor, neededIn);
    if (sleep == 0) {
      Thread.yield();
    } else {
      LockSupport.parkNanos(this, sleep);
    }
  }

  /** Whether nothing has happened for long and nothing is due; as {@link #rest} otherwise. */
  boolean isLong(long now, long neededIn) {
    return quiet && now - quietSince >= LONG_NANOS && neededIn == Long.MAX_VALUE;
  }

  /** How long to sleep, ns; 0 to stay awake. */
  static long sleepNanos(long quietFor, long neededIn) {
    if (quietFor < YIELD_NANOS || neededIn < 2 * OVERSLEPT_NANOS) {
      return 0;
    }
    long sleep = Math.min(quietFor / SLEEP_DIVISOR, LONGEST_SLEEP_NANOS);
    long most =
        quietFor < VERY_LONG_NANOS ? LONGEST_LONG_SLEEP_NANOS : LONGEST_VERY_LONG_SLEEP_NANOS;
    long longer = Math.min(quietFor / LONG_SLEEP_DIVISOR, most);
    long wanted = Math.max(SHORTEST_SLEEP_NANOS, Math.max(sleep, longer));
    return Math.min(wanted, neededIn - OVERSLEPT_NANOS);
  }
}
