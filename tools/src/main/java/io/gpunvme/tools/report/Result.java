package io.gpunvme.tools.report;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import org.jspecify.annotations.Nullable;

/**
 * One result of a file. Every number is finite.
 *
 * @param id its name, whatever the file says
 * @param unit of {@code median}, {@code min}, {@code max}, and of the values of limit and peer
 * @param conditions by name, nested ones as {@code outer.inner}, in the order of the file
 * @param latency percentiles in ascending order, empty if the file has none
 * @param limit what bounds it, or null
 * @param peer the best of others, or null
 * @param verified whether data or counts were checked
 */
record Result(
    String id,
    String unit,
    double median,
    double min,
    double max,
    long samples,
    Map<String, String> conditions,
    List<Percentile> latency,
    @Nullable Reference limit,
    @Nullable Reference peer,
    boolean verified) {
  /** A named number to compare with. */
  record Reference(String name, double value) {
    /** How many times this the value is, or NaN where that makes no sense. */
    double ratio(double of) {
      return value > 0 ? of / value : Double.NaN;
    }
  }

  /**
   * A point of a latency distribution.
   *
   * @param name {@code p99.9} or {@code max}
   * @param rank what it is sorted by: 99.9, or 100 for the maximum
   */
  record Percentile(String name, double rank, double nanos) {}

  Result {
    conditions = Collections.unmodifiableMap(new LinkedHashMap<>(conditions));
    latency = List.copyOf(latency);
  }

  /** The condition as a finite number, if it is one. */
  OptionalDouble number(String condition) {
    String text = conditions.get(condition);
    if (text == null) {
      return OptionalDouble.empty();
    }
    try {
      double value = Double.parseDouble(text);
      return Double.isFinite(value) ? OptionalDouble.of(value) : OptionalDouble.empty();
    } catch (NumberFormatException e) {
      return OptionalDouble.empty();
    }
  }
}
