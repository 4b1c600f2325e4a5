package io.gpunvme.base;

import java.util.Locale;

/**
 * Text from outside (names in a file system, lines of a file) made safe for a terminal and for one
 * line of a log.
 */
public final class Printable {
  private static final int LONGEST_QUOTE = 80;

  private Printable() {}

  /** The text with each control character (C0, delete and C1) as its number, {@code \\x1B}. */
  public static String of(String text) {
    if (text.chars().noneMatch(Character::isISOControl)) {
      return text;
    }
    StringBuilder printable = new StringBuilder(text.length());
    for (int i = 0; i < text.length(); i++) {
      char c = text.charAt(i);
      printable.append(
          Character.isISOControl(c) ? String.format(Locale.ROOT, "\\x%02X", (int) c) : c);
    }
    return printable.toString();
  }

  /** The same for a quote in a message: at most 80 characters of the text. */
  public static String quote(String text) {
    return text.length() <= LONGEST_QUOTE ? of(text) : of(text.substring(0, LONGEST_QUOTE)) + "…";
  }
}
