package io.gpunvme.tools.report;

import java.util.Locale;

/**
 * Elements of SVG documents, which classes of a style sheet colour. Text comes in through {@link
 * Html#text} only.
 */
public final class Svg {
  private Svg() {}

  /**
   * A document without an end, which {@code </svg>} is. It has a title and a description for those
   * who do not see it, and a background of class {@code page}.
   */
  public static StringBuilder document(
      int width, double height, String title, String description, String style) {
    StringBuilder out = new StringBuilder();
    out.append(
        """
        <svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%s" viewBox="0 0 %d %s" \
        role="img" aria-labelledby="title desc">
        <title id="title">%s</title>
        <desc id="desc">%s</desc>
        <style>
        %s</style>
        """
            .formatted(
                width,
                number(height),
                width,
                number(height),
                escaped(title),
                escaped(description),
                style));
    return out.append("<rect width=\"100%\" height=\"100%\" rx=\"10\" class=\"page\"/>\n");
  }

  /** A box of a class, with round corners. */
  public static String rect(
      String style, double x, double y, double width, double height, int round) {
    return "<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"%d\"/>\n"
        .formatted(style, number(x), number(y), number(width), number(height), round);
  }

  /** Appends a text of some classes; none of none. */
  public static void text(StringBuilder out, double x, double y, String style, String text) {
    if (!text.isEmpty()) {
      out.append(
          "<text%s x=\"%s\" y=\"%s\">%s</text>\n"
              .formatted(
                  style.isEmpty() ? "" : " class=\"" + style + "\"",
                  number(x),
                  number(y),
                  escaped(text)));
    }
  }

  /** Text as markup. */
  public static String escaped(String text) {
    return Html.text(text).markup();
  }

  /** A coordinate, with one decimal where it needs one. */
  public static String number(double value) {
    return value == Math.rint(value)
        ? Long.toString((long) value)
        : String.format(Locale.ROOT, "%.1f", value);
  }
}
