package io.gpunvme.storage.path.set;

import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Bytes a second of about the last second. Threads that add at the same moment in which a slot
 * begins anew may lose a few bytes: this is for people. Safe for all threads, without a lock.
 */
final class RecentRate {
  private static final int SLOTS = 5;
  private static final long SLOT_NANOS = 250_000_000;

  /** The slots that are over count, and the one that is not counts for its part. */
  private static final long WINDOW_NANOS = (SLOTS - 1) * SLOT_NANOS;

  /** Which quarter of a second each slot is for. */
  private final AtomicLongArray periods = new AtomicLongArray(SLOTS);

  private final AtomicLongArray bytes = new AtomicLongArray(SLOTS);
  private final long start;

  /**
   * @param now a time in ns, as all others
   */
  RecentRate(long now) {
    start = now;
  }

  /**
   * Bytes have been moved.
   *
   * @param took ns; of those that took longer than the window only what fits counts
   */
  void add(long now, long moved, long took) {
    long period = period(now);
    int slot = slot(period);
    long was = periods.get(slot);
    if (was != period && periods.compareAndSet(slot, was, period)) {
      bytes.set(slot, 0);
    }
    bytes.getAndAdd(
        slot, took <= WINDOW_NANOS ? moved : (long) ((double) moved * WINDOW_NANOS / took));
  }

  /** 10^9 bytes a second. */
  double gigabytesPerSecond(long now) {
    long period = period(now);
    long sum = 0;
    for (int slot = 0; slot < SLOTS; slot++) {
      long age = period - periods.get(slot);
      if (age >= 0 && age < SLOTS) {
        sum += bytes.get(slot);
      }
    }
    long nanos = Math.clamp(now - start, 1, WINDOW_NANOS + (now - start) % SLOT_NANOS);
    return (double) sum / nanos;
  }

  private long period(long now) {
    return (now - start) / SLOT_NANOS;
  }

  private static int slot(long period) {
    return (int) Math.floorMod(period, (long) SLOTS);
  }
}
