package io.gpunvme.models.format;

/** Text from a file, for a message: short, in one line. */
final class Quote {
  private static final int LONGEST = 80;

  private Quote() {}

  static String of(String text) {
    StringBuilder shown = new StringBuilder();
    text.codePoints()
        .limit(LONGEST)
        .forEach(
            c -> {
              if (Character.isISOControl(c) || Character.getType(c) == Character.SURROGATE) {
                shown.append("\\u%04x".formatted(c));
              } else {
                shown.appendCodePoint(c);
              }
            });
    return text.codePointCount(0, text.length()) > LONGEST ? shown + "..." : shown.toString();
  }
}
