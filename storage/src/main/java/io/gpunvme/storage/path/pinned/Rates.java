package io.gpunvme.storage.path.pinned;

import io.gpunvme.storage.path.RequestShape;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

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
  private static final double NEW_SHARE = 0.5;

  private static final Map<String, Double> MEASURED = new ConcurrentHashMap<>();

  private final String device;
  private final int threads;

  /**
   * @param device what the file lies on, and where the data goes
   */
  Rates(String device, int threads) {
    this.device = device;
    this.threads = threads;
  }

  private String key(boolean cached) {
    return device + (cached ? " cached" : " direct");
  }

  /** A transfer of that many bytes has taken that long; all of it one way. */
  void measured(boolean cached, long bytes, long ranges, long nanos) {
    if (bytes >= LEAST_BYTES && bytes / ranges >= SHORT && nanos > 0) {
      double rate = (double) bytes / nanos;
      MEASURED.merge(key(cached), rate, (old, now) -> old * (1 - NEW_SHARE) + now * NEW_SHARE);
    }
  }

  /** 10^9 bytes a second. */
  double expected(RequestShape shape) {
    if (shape.bytes() <= 0) {
      return 0;
    }
    double resident = Math.clamp(shape.resident(), 0, 1);
    double cached =
        MEASURED.getOrDefault(key(true), Math.min(CACHED_MOST, CACHED_PER_THREAD * threads));
    double cold = MEASURED.getOrDefault(key(false), COLD);
    double nanos = shape.bytes() * (resident / cached + (1 - resident) / cold);
    if (shape.meanLength() < SHORT) {
      double seconds = shape.ranges() * (resident / CACHED_RANGES + (1 - resident) / COLD_RANGES);
      nanos = Math.max(nanos, seconds * 1e9);
    }
    return shape.bytes() / nanos;
  }
}
