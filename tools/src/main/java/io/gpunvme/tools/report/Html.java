package io.gpunvme.tools.report;

/**
 * Markup that is safe to put into a page or a picture: text comes in through {@link #text} only,
 * which escapes it.
 */
public record Html(String markup) {
  static final Html EMPTY = new Html("");

  /** The text itself, whatever it contains. */
  public static Html text(String text) {
    StringBuilder out = new StringBuilder(text.length() + 16);
    text.codePoints().forEach(c -> escape(out, c));
    return new Html(out.toString());
  }

  /** A dotted name, which a narrow place breaks at its dots. */
  static Html code(String name) {
    return element("code", "", new Html(text(name).markup.replace(".", ".<wbr>")));
  }

  private static void escape(StringBuilder out, int c) {
    switch (c) {
      case '<' -> out.append("&lt;");
      case '>' -> out.append("&gt;");
      case '&' -> out.append("&amp;");
      case '"' -> out.append("&quot;");
      case '\'' -> out.append("&#39;");
      default -> out.appendCodePoint(shown(c) ? c : 0xFFFD);
    }
  }

  /** Not what HTML forbids, nor what reorders the text around it. */
  private static boolean shown(int c) {
    int type = Character.getType(c);
    return c == '\n'
        || c == '\t'
        || (type != Character.CONTROL && type != Character.FORMAT && type != Character.SURROGATE);
  }

  /** An element of our own; {@code classes} is not text from outside. */
  static Html element(String name, String classes, Html... inner) {
    StringBuilder out = new StringBuilder("<").append(name);
    if (!classes.isEmpty()) {
      out.append(" class=\"").append(classes).append('"');
    }
    out.append('>');
    for (Html part : inner) {
      out.append(part.markup);
    }
    return new Html(out.append("</").append(name).append('>').toString());
  }

  Html plus(Html next) {
    return new Html(markup + next.markup);
  }
}
