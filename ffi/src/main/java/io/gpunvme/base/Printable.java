package io.gpunvme.base;

import java.util.Locale;

/**
 * Text from outside (names in a file system, lines and fields of a file) made safe for a terminal
 * and for one line of a log.
 */
public final class Printable {
  private static final int LONGEST_QUOTE = 80;

  private Printable() {}

  /**
   * The text with each control character (C0, delete and C1) as its number, {@code \\x1B}, and
   * halves of surrogate pairs, which no encoding has, as {@code \\uD83D}.
   */
  public static String of(String text) {
    if (text.codePoints().noneMatch(c -> Character.isISOControl(c) || half(c))) {
      return text;
    }
    StringBuilder printable = new StringBuilder(text.length());
    text.codePoints()
        .forEach(
            c -> {
              if (Character.isISOControl(c)) {
                printable.append(String.format(Locale.ROOT, "\\x%02X", c));
              } else if (half(c)) {
                printable.append(String.format(Locale.ROOT, "\\u%04X", c));
              } else {
                printable.appendCodePoint(c);
              }
            });
    return printable.toString();
  }

  private static boolean half(int codePoint) {
    return Character.getType(codePoint) == Character.SURROGATE;
  }

  /** The same for a quote in a message: at most 80 characters of the text. */
  public static String quote(String text) {
    return text.codePointCount(0, text.length()) <= LONGEST_QUOTE
        ? of(text)
        : of(text.substring(0, text.offsetByCodePoints(0, LONGEST_QUOTE))) + "…";
  }
}
