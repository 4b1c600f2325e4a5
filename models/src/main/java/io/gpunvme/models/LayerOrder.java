package io.gpunvme.models;

import java.util.Comparator;

/** Names by the numbers in them: {@code layers.2.} before {@code layers.10.}. */
final class LayerOrder implements Comparator<String> {
  @Override
  public int compare(String a, String b) {
    int i = 0;
    int j = 0;
    while (i < a.length() && j < b.length()) {
      int endA = end(a, i);
      int endB = end(b, j);
      int order =
          endA > i && endB > j
              ? number(a, i, endA, b, j, endB)
              : Character.compare(a.charAt(i), b.charAt(j));
      if (order != 0) {
        return order;
      }
      i = Math.max(endA, i + 1);
      j = Math.max(endB, j + 1);
    }
    int rest = Integer.compare(a.length() - i, b.length() - j);
    return rest != 0 ? rest : a.compareTo(b);
  }

  /** Behind the digits that begin there. */
  private static int end(String text, int from) {
    int end = from;
    while (end < text.length() && text.charAt(end) >= '0' && text.charAt(end) <= '9') {
      end++;
    }
    return end;
  }

  private static int number(String a, int i, int endA, String b, int j, int endB) {
    String x = a.substring(nonZero(a, i, endA), endA);
    String y = b.substring(nonZero(b, j, endB), endB);
    int length = Integer.compare(x.length(), y.length());
    return length != 0 ? length : x.compareTo(y);
  }

  private static int nonZero(String text, int from, int to) {
    int at = from;
    while (at < to - 1 && text.charAt(at) == '0') {
      at++;
    }
    return at;
  }
}
