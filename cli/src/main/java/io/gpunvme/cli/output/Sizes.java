package io.gpunvme.cli.output;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Sizes in bytes as people write them: {@code 4096}, {@code 64MiB}, {@code 1.5GiB}. */
public final class Sizes {
  private static final String[] UNITS = {"B", "KiB", "MiB", "GiB", "TiB"};
  private static final int UNIT_SHIFT = 10;
  private static final Pattern FORM =
      Pattern.compile("(?<number>\\d{1,19}(\\.\\d{1,9})?)\\s?(?<unit>[a-z]*)");
  private static final Map<String, Integer> SHIFTS =
      Map.ofEntries(
          Map.entry("", 0),
          Map.entry("b", 0),
          Map.entry("k", 10),
          Map.entry("kib", 10),
          Map.entry("m", 20),
          Map.entry("mib", 20),
          Map.entry("g", 30),
          Map.entry("gib", 30),
          Map.entry("t", 40),
          Map.entry("tib", 40));

  private Sizes() {}

  /**
   * Reads a size; units are powers of 1024.
   *
   * @throws IllegalArgumentException if it is none, or has a fraction of a byte
   */
  public static long parse(String text) {
    Matcher form = FORM.matcher(text.toLowerCase(Locale.ROOT));
    Integer shift = form.matches() ? SHIFTS.get(form.group("unit")) : null;
    if (shift == null) {
      throw bad(text);
    }
    BigDecimal bytes = new BigDecimal(form.group("number")).multiply(power(shift));
    try {
      return bytes.toBigIntegerExact().longValueExact();
    } catch (ArithmeticException e) {
      throw bad(text);
    }
  }

  private static BigDecimal power(int shift) {
    return new BigDecimal(BigInteger.ONE.shiftLeft(shift));
  }

  private static IllegalArgumentException bad(String text) {
    return new IllegalArgumentException(
        "'" + text + "' is not a size such as 4096, 512KiB or 1.5GiB");
  }

  /** The size in the largest unit of which it has at least one, with two decimals where needed. */
  public static String format(long bytes) {
    int unit = 0;
    while (unit < UNITS.length - 1 && bytes >>> ((unit + 1) * UNIT_SHIFT) != 0) {
      unit++;
    }
    long one = 1L << (unit * UNIT_SHIFT);
    return bytes % one == 0
        ? bytes / one + UNITS[unit]
        : String.format(Locale.ROOT, "%.2f%s", (double) bytes / one, UNITS[unit]);
  }
}
