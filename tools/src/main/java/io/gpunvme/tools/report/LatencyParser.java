package io.gpunvme.tools.report;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonPrimitive;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Percentiles as result files have them: {@code "latency_ns": {"p50": 1200, "max": 9000}}, a list
 * of {@code {"percentile": 50, "ns": 1200}} or {@code [50, 1200]}, or single conditions such as
 * {@code p50_ns}. What is none of these is left to the table of conditions.
 */
final class LatencyParser {
  private static final Pattern NAME = Pattern.compile("p(\\d{1,3}(?:\\.\\d{1,6})?)|max");
  private static final Pattern CONDITION = Pattern.compile("(p\\d{1,3}(?:\\.\\d{1,6})?|max)_ns");
  private static final double HIGHEST = 100;
  private static final int MOST = 64;

  private final Map<String, String> conditions;
  private final TreeMap<Double, Result.Percentile> found = new TreeMap<>();

  LatencyParser(Map<String, String> conditions) {
    this.conditions = conditions;
  }

  List<Result.Percentile> read(@Nullable JsonElement latency) {
    if (latency instanceof JsonObject object) {
      object.entrySet().forEach(e -> add(e.getKey(), number(e.getValue())));
    } else if (latency instanceof JsonArray list) {
      list.forEach(this::addPair);
    } else {
      for (Map.Entry<String, String> condition : conditions.entrySet()) {
        Matcher matcher = CONDITION.matcher(condition.getKey());
        if (matcher.matches()) {
          add(matcher.group(1), parsed(condition.getValue()));
        }
      }
    }
    return found.values().stream()
        .sorted(Comparator.comparingDouble(Result.Percentile::rank))
        .limit(MOST)
        .toList();
  }

  private void addPair(JsonElement element) {
    if (element instanceof JsonArray pair && pair.size() == 2) {
      addRank(number(pair.get(0)), number(pair.get(1)));
    } else if (element instanceof JsonObject object) {
      addRank(number(object.get("percentile")), number(object.get("ns")));
    }
  }

  private void addRank(OptionalDouble rank, OptionalDouble nanos) {
    if (rank.isPresent()) {
      double value = rank.getAsDouble();
      add(value == HIGHEST ? "max" : "p" + Numbers.plain(value), nanos);
    }
  }

  private void add(String name, OptionalDouble nanos) {
    Matcher matcher = NAME.matcher(name);
    // A logarithmic axis has no place for 0.
    if (!matcher.matches() || nanos.isEmpty() || nanos.getAsDouble() <= 0) {
      return;
    }
    String digits = matcher.group(1);
    double rank = digits == null ? HIGHEST : Double.parseDouble(digits);
    if (rank <= HIGHEST) {
      found.put(rank, new Result.Percentile(name, rank, nanos.getAsDouble()));
    }
  }

  private static OptionalDouble number(@Nullable JsonElement element) {
    return element instanceof JsonPrimitive primitive && primitive.isNumber()
        ? finite(primitive.getAsDouble())
        : OptionalDouble.empty();
  }

  private static OptionalDouble parsed(String text) {
    try {
      return finite(Double.parseDouble(text));
    } catch (NumberFormatException e) {
      return OptionalDouble.empty();
    }
  }

  private static OptionalDouble finite(double value) {
    return Double.isFinite(value) ? OptionalDouble.of(value) : OptionalDouble.empty();
  }
}
