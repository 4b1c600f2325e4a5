package io.gpunvme.storage.path.pinned;

import io.gpunvme.storage.path.RequestShape;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * What transfers have reached in this process, by device and by whether the page cache held the
 * data: what the next are expected to reach. Safe for all threads.
 */
final class Rates {
  /** Shorter transfers say more about their start than about a rate. */
  private static final long LEAST_BYTES = 32 << 20;

  /** Ranges shorter than this are bound by their number. */
  private static final long SHORT = 64 << 10;

  private static final double COLD = 3.5;
  private static final double CACHED_PER_THREAD = 4;
  private static final double CACHED_MOST = 40;
  private static final double COLD_RANGES = 85_000;
  private static final double CACHED_RANGES = 2_400_000;

  /** The first transfers take memory and start threads: one that is slow says little. */
  private static final double SLOWER_SHARE = 0.1;

  private static final double FASTER_SHARE = 0.5;

  /**
   * A rate that is older counts no more, or a path that was slow once would never be tried again.
   */
  private static final long OLD_NANOS = TimeUnit.SECONDS.toNanos(5);

  /** What was reached, and when. */
  private record Measured(double rate, long nanos) {}

  private static final Map<String, Measured> MEASURED = new ConcurrentHashMap<>();
  private static final Map<String, Activity> ACTIVE = new ConcurrentHashMap<>();

  private final String device;
  private final int threads;
  private final LongSupplier clock;
  private final Activity activity;

  /**
   * @param device what the file lies on, and where the data goes
   */
  Rates(String device, int threads) {
    this(device, threads, System::nanoTime);
  }

  /** With another clock, of nanoseconds. */
  Rates(String device, int threads, LongSupplier clock) {
    this.device = device;
    this.threads = threads;
    this.clock = clock;
    activity = ACTIVE.computeIfAbsent(device, _ -> new Activity());
  }

  /** The transfers of this process with a device that are under way. */
  private static final class Activity {
    private int active;
    private long changed;

    /** Transfers times nanoseconds, so far. */
    private double sum;

    synchronized double changeBy(int transfers, long now) {
      sum += (double) active * (now - changed);
      changed = now;
      active += transfers;
      return sum;
    }
  }

  /** A transfer that is under way, until it is closed. */
  final class Transfer implements AutoCloseable {
    private final long began = clock.getAsLong();
    private final double before = activity.changeBy(1, began);

    /**
     * So many bytes have been moved, all in one way. Those that were under way beside it have
     * shared the rate.
     */
    void measured(boolean cached, long bytes, long ranges) {
      long now = clock.getAsLong();
      long nanos = now - began;
      if (bytes >= LEAST_BYTES && bytes / ranges >= SHORT && nanos > 0) {
        double together = (activity.changeBy(0, now) - before) / nanos;
        reached(cached, (double) bytes / nanos * together, now);
      }
    }

    @Override
    public void close() {
      activity.changeBy(-1, clock.getAsLong());
    }
  }

  private String key(boolean cached) {
    return device + (cached ? " cached" : " direct");
  }

  /** A transfer begins. */
  Transfer begin() {
    return new Transfer();
  }

  private void reached(boolean cached, double rate, long now) {
    double old = rate(cached);
    double share = rate < old ? SLOWER_SHARE : FASTER_SHARE;
    MEASURED.put(key(cached), new Measured(old + (rate - old) * share, now));
  }

  private double rate(boolean cached) {
    Measured last = MEASURED.get(key(cached));
    if (last != null && clock.getAsLong() - last.nanos() < OLD_NANOS) {
      return last.rate();
    }
    return cached ? Math.min(CACHED_MOST, CACHED_PER_THREAD * threads) : COLD;
  }

  /** 10^9 bytes a second. */
  double expected(RequestShape shape) {
    if (shape.bytes() <= 0) {
      return 0;
    }
    double resident = Math.clamp(shape.resident(), 0, 1);
    double nanos = shape.bytes() * (resident / rate(true) + (1 - resident) / rate(false));
    if (shape.meanLength() < SHORT) {
      double seconds = shape.ranges() * (resident / CACHED_RANGES + (1 - resident) / COLD_RANGES);
      nanos = Math.max(nanos, seconds * 1e9);
    }
    return shape.bytes() / nanos;
  }
}
