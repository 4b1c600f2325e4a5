package io.gpunvme.cli;

import io.gpunvme.tools.bench.Measurement;
import java.util.Locale;

/** Measurements as text for people. */
final class NumberTexts {
  private static final double MILLION = 1e6;

  /** From here on, whole numbers are as exact as four digits are. */
  private static final double THOUSAND = 1e3;

  private NumberTexts() {}

  private static boolean inMillions(Measurement m) {
    return m.unit().equals("commands/s") && m.median() >= MILLION;
  }

  /** A value in the unit that {@link #unit} returns. */
  static String number(Measurement m, double value) {
    if (inMillions(m)) {
      return String.format(Locale.ROOT, "%.2f", value / MILLION);
    }
    return switch (m.unit()) {
      case "GB/s" -> String.format(Locale.ROOT, "%.2f", value);
      case "ratio" -> String.format(Locale.ROOT, "%.3f", value);
      default -> String.format(Locale.ROOT, "%.0f", value);
    };
  }

  static String unit(Measurement m) {
    return inMillions(m) ? "M " + m.unit() : m.unit();
  }

  /** A condition's value. */
  static String text(Object value) {
    return value instanceof Double d
        ? String.format(Locale.ROOT, Math.abs(d) < THOUSAND ? "%.4g" : "%.0f", d)
        : value.toString();
  }
}
