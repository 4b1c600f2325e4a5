package io.gpunvme.tools.bench;

import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

/** Latencies of all repetitions together. */
final class Latencies {
  private static final long LONGEST_NANOS = TimeUnit.SECONDS.toNanos(10);
  private static final int DIGITS = 3;

  private final Histogram all = new Histogram(LONGEST_NANOS, DIGITS);

  /** Adds a repetition's, ns, at least one; returns their median. */
  double add(int[] nanos) {
    for (int one : nanos) {
      all.recordValue(Math.min(Integer.toUnsignedLong(one), LONGEST_NANOS));
    }
    int[] sorted = nanos.clone();
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  /** Percentiles in ns. */
  void describe(Map<String, Object> conditions) {
    conditions.put("p50_ns", all.getValueAtPercentile(50));
    conditions.put("p99_ns", all.getValueAtPercentile(99));
    conditions.put("p99.9_ns", all.getValueAtPercentile(99.9));
  }
}
