package io.gpunvme.tools.report;

import java.math.BigDecimal;
import java.math.MathContext;
import java.util.Locale;

/** Numbers as people read them, with three to four digits and the unit scaled. */
final class Numbers {
  private static final String[] BINARY = {"B", "KiB", "MiB", "GiB", "TiB"};
  private static final MathContext DIGITS = new MathContext(4);

  private Numbers() {}

  /** The value with its unit. */
  static String of(double value, String unit) {
    return switch (unit) {
      case "ns" -> nanos(value);
      case "commands/s" -> thousands(value) + "/s";
      default -> plain(value) + " " + unit;
    };
  }

  static String nanos(double value) {
    if (value < 1e3) {
      return plain(value) + " ns";
    }
    if (value < 1e6) {
      return plain(value / 1e3) + " µs";
    }
    return value < 1e9 ? plain(value / 1e6) + " ms" : plain(value / 1e9) + " s";
  }

  private static String thousands(double value) {
    if (value < 1e3) {
      return plain(value);
    }
    if (value < 1e6) {
      return plain(value / 1e3) + " k";
    }
    return value < 1e9 ? plain(value / 1e6) + " M" : plain(value / 1e9) + " G";
  }

  /** Four digits at most, without an exponent where that is short. */
  static String plain(double value) {
    BigDecimal rounded = new BigDecimal(value).round(DIGITS).stripTrailingZeros();
    String text = rounded.toPlainString();
    return text.length() > 12 ? String.format(Locale.ROOT, "%.3g", value) : text;
  }

  /** {@code 4 KiB} for 4096, {@code 1000 B} for 1000. */
  static String bytes(long bytes) {
    long value = bytes;
    int unit = 0;
    while (value >= 1024 && value % 1024 == 0 && unit < BINARY.length - 1) {
      value /= 1024;
      unit++;
    }
    return value + " " + BINARY[unit];
  }

  /** 0.853 as {@code 85.3 %}. */
  static String percent(double ratio) {
    return Double.isFinite(ratio) ? plain(Math.round(ratio * 1000) / 10.0) + " %" : "";
  }

  /** 2.54 as {@code 2.54×}. */
  static String times(double ratio) {
    return Double.isFinite(ratio)
        ? new BigDecimal(ratio).round(new MathContext(3)).stripTrailingZeros().toPlainString() + "×"
        : "";
  }
}
