package io.gpunvme.capi;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;

/** The first of many lines, and how many there are, as a text for C. For one thread. */
final class Lines {
  /** Lines that are kept: how many there are is decided outside. */
  private static final int MOST = 1000;

  private final String name;
  private final JsonArray first = new JsonArray();
  private long total;

  /**
   * @param name of the lines in the text
   */
  Lines(String name) {
    this.name = name;
  }

  void add(String line) {
    total++;
    if (first.size() < MOST) {
      first.add(line);
    }
  }

  /** There are so many more, which nobody has lines of. */
  void count(long more) {
    total += more;
  }

  String json() {
    JsonObject all = new JsonObject();
    all.addProperty("total", total);
    all.add(name, first);
    return all.toString();
  }
}
