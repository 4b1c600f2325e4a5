package io.gpunvme.cli.output;

import java.util.Locale;

/** Sizes in bytes as text for people; {@code ByteSize} parses the sizes that people write. */
public final class Sizes {
  private static final String[] UNITS = {"B", "KiB", "MiB", "GiB", "TiB"};
  private static final int UNIT_SHIFT = 10;

  private Sizes() {}

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
