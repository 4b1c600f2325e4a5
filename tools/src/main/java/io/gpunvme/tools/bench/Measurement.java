package io.gpunvme.tools.bench;

import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What was measured and checked: one without correct counts or data is never made.
 *
 * @param id stable name
 * @param unit of the samples: {@code commands/s}, {@code GB/s}, {@code ns}, {@code us} or {@code
 *     ratio}
 * @param samples in the order in which they were taken, at least one
 * @param conditions what it was measured under and beside, by name
 * @param limit what it cannot be better than, or null
 * @param peer the best of what does the same otherwise, in the same run, or null
 */
public record Measurement(
    String id,
    String unit,
    double[] samples,
    Map<String, Object> conditions,
    @Nullable Limit limit,
    @Nullable Peer peer) {
  /**
   * Another way to do the same.
   *
   * @param name which
   * @param value its median, in the unit of what it is compared with
   */
  public record Peer(String name, double value) {}

  /**
   * A result that bounds another one.
   *
   * @param id its name
   * @param value its median, in the unit of what it bounds
   */
  public record Limit(String id, double value) {}

  /** Copies the samples and the map. */
  public Measurement {
    if (samples.length == 0) {
      throw new IllegalArgumentException(id + " has no sample");
    }
    samples = samples.clone();
    conditions = Collections.unmodifiableMap(new LinkedHashMap<>(conditions));
  }

  static Measurement of(String id, String unit, double[] samples, Map<String, Object> conditions) {
    return new Measurement(id, unit, samples, conditions, null, null);
  }

  /** The same by another name. */
  public Measurement named(String other) {
    return new Measurement(other, unit, samples, conditions, limit, peer);
  }

  /** The same under other conditions. */
  Measurement under(Map<String, Object> others) {
    return new Measurement(id, unit, samples, others, limit, peer);
  }

  /** The same beside its limit. */
  public Measurement limitedBy(Measurement other) {
    return new Measurement(
        id, unit, samples, conditions, new Limit(other.id(), other.median()), peer);
  }

  /** The same beside what nobody measured, in its unit. */
  public Measurement limitedBy(String name, double value) {
    return new Measurement(id, unit, samples, conditions, new Limit(name, value), peer);
  }

  /** The same beside another way to do it. */
  public Measurement besides(Measurement other) {
    return new Measurement(
        id, unit, samples, conditions, limit, new Peer(other.id(), other.median()));
  }

  /** The same beside what others have published. */
  public Measurement besides(String name, double value) {
    return new Measurement(id, unit, samples, conditions, limit, new Peer(name, value));
  }

  @Override
  public double[] samples() {
    return samples.clone();
  }

  /** The middle sample; of an even number the upper of the two. */
  public double median() {
    return sorted()[samples.length / 2];
  }

  /** The smallest sample. */
  public double min() {
    return sorted()[0];
  }

  /** The largest sample. */
  public double max() {
    return sorted()[samples.length - 1];
  }

  private double[] sorted() {
    double[] sorted = samples.clone();
    Arrays.sort(sorted);
    return sorted;
  }
}
