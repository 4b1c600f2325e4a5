package io.gpunvme.gpu.watch;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.SequencedMap;
import org.jspecify.annotations.Nullable;

/**
 * One line of metrics. Immutable.
 *
 * @param name of the metric, of a summary with {@code _sum} or {@code _count}
 * @param labels in the order of the text
 * @param value a number as the text has it
 */
public record Sample(String name, SequencedMap<String, String> labels, String value) {
  /** Copies the labels. */
  public Sample {
    labels = Collections.unmodifiableSequencedMap(new LinkedHashMap<>(labels));
  }

  /** The value; infinite and no number where the text says so. */
  public double number() {
    return switch (value) {
      case "+Inf", "Inf" -> Double.POSITIVE_INFINITY;
      case "-Inf" -> Double.NEGATIVE_INFINITY;
      default -> Double.parseDouble(value);
    };
  }

  /** The value of a label, or null. */
  public @Nullable String label(String key) {
    return labels.get(key);
  }

  /** The same with another label behind the others; one of the same name is replaced. */
  Sample with(String key, String text) {
    SequencedMap<String, String> all = new LinkedHashMap<>(labels);
    all.remove(key);
    all.put(key, text);
    return new Sample(name, all, value);
  }
}
