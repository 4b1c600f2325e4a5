package io.gpunvme.tools.report;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A plot as report.js draws it.
 *
 * @param title also what a screen reader says
 * @param axis what the places on the first axis are
 * @param unit of every value
 * @param logarithmic whether the value axis is; values of 0 are then left out
 */
record Chart(
    Kind kind,
    String title,
    String axis,
    List<Place> places,
    String unit,
    boolean logarithmic,
    List<Series> series) {
  /** How values are drawn. */
  enum Kind {
    /** Points joined by lines. */
    LINE,
    /** Upright bars. */
    BAR,
    /** Lying bars, for many or long names. */
    ROWS,
    /** Points alone, for a logarithmic axis. */
    DOTS
  }

  /**
   * A place on the first axis.
   *
   * @param value where it lies on a logarithmic axis, or NaN for places side by side
   * @param color of what is drawn there, or null for the series'
   */
  record Place(String name, double value, @Nullable String color) {
    static Place named(String name) {
      return new Place(name, Double.NaN, null);
    }
  }

  /**
   * What belongs together.
   *
   * @param color a path's name or a digit
   * @param hatched fills bars with stripes
   * @param points one a place, or null
   */
  record Series(String name, String color, boolean hatched, List<@Nullable Point> points) {
    Series {
      points = Collections.unmodifiableList(new ArrayList<>(points));
    }
  }

  /** A value with its spread and what it is compared with, NaN where there is nothing. */
  record Point(double value, double min, double max, double limit, double peer) {
    static Point of(double value) {
      return new Point(value, value, value, Double.NaN, Double.NaN);
    }

    static Point alone(Result result) {
      return new Point(result.median(), result.min(), result.max(), Double.NaN, Double.NaN);
    }

    static Point of(Result result) {
      Result.Reference limit = result.limit();
      Result.Reference peer = result.peer();
      return new Point(
          result.median(),
          result.min(),
          result.max(),
          limit == null ? Double.NaN : limit.value(),
          peer == null ? Double.NaN : peer.value());
    }
  }

  Chart {
    places = List.copyOf(places);
    series = List.copyOf(series);
  }

  JsonObject json() {
    JsonObject json = new JsonObject();
    json.addProperty("kind", kind.name());
    json.addProperty("title", title);
    json.addProperty("axis", axis);
    json.addProperty("unit", unit);
    json.addProperty("log", logarithmic);
    JsonArray at = new JsonArray();
    for (Place place : places) {
      JsonObject one = new JsonObject();
      one.addProperty("name", place.name());
      number(one, "value", place.value());
      if (place.color() != null) {
        one.addProperty("color", place.color());
      }
      at.add(one);
    }
    json.add("places", at);
    JsonArray all = new JsonArray();
    series.forEach(s -> all.add(json(s)));
    json.add("series", all);
    return json;
  }

  private static JsonObject json(Series series) {
    JsonObject json = new JsonObject();
    json.addProperty("name", series.name());
    json.addProperty("color", series.color());
    json.addProperty("hatched", series.hatched());
    JsonArray points = new JsonArray();
    for (Point point : series.points()) {
      JsonObject one = new JsonObject();
      if (point != null) {
        number(one, "value", point.value());
        number(one, "min", point.min());
        number(one, "max", point.max());
        number(one, "limit", point.limit());
        number(one, "peer", point.peer());
      }
      points.add(one);
    }
    json.add("points", points);
    return json;
  }

  private static void number(JsonObject json, String name, double value) {
    if (Double.isFinite(value)) {
      json.addProperty(name, value);
    }
  }
}
