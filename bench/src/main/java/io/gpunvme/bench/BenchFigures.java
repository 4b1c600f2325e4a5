package io.gpunvme.bench;

import com.google.gson.JsonObject;
import io.gpunvme.bench.BenchResults.Result;
import java.util.Arrays;
import java.util.Locale;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/**
 * Fills the tables of figures of a page. A comment in the page says which results a table shows:
 *
 * <pre>{@code
 * <!-- figures MACHINE
 * What was measured | id | limit | peer
 * -->
 * }</pre>
 *
 * <p>The table behind the comment is replaced. A limit is {@code -}, the name of the result's own
 * limit, or {@code id=name}, another result of the same run. A peer is {@code -}, {@code
 * published}, which is the result's own peer, or {@code id=name} once or more, with commas between.
 */
final class BenchFigures {
  private static final Pattern TABLE =
      Pattern.compile("(<!-- figures (\\S+)\n((?:[^\n]+\n)+?)-->\n)(?:\n(?:\\|[^\n]*\n)+)?");

  private BenchFigures() {}

  /**
   * The page with all its tables made again.
   *
   * @throws IllegalArgumentException if a result is missing, or a line has no four parts
   */
  static String fill(String page, BenchResults results) {
    return TABLE.matcher(page).replaceAll(match -> Matcher.quoteReplacement(table(match, results)));
  }

  private static String table(MatchResult match, BenchResults results) {
    StringBuilder table = new StringBuilder(match.group(1));
    table.append("\n| | gpunvme | limit | peer | result |\n|---|---|---|---|---|\n");
    match.group(3).lines().forEach(line -> table.append(row(line, match.group(2), results)));
    return table.toString();
  }

  private static String row(String line, String machine, BenchResults results) {
    String[] parts = line.split(" \\| ", -1);
    if (parts.length != 4) {
      throw new IllegalArgumentException("not: what | id | limit | peer: " + line);
    }
    Result result = results.newest(machine, parts[1]);
    return "| %s | **%s** | %s | %s | `%s`, %s %s |%n"
        .formatted(
            parts[0],
            value(result.median(), result.unit()),
            limit(parts[2], result),
            peer(parts[3], result),
            result.id(),
            result.run().date(),
            result.run().commit());
  }

  private static String limit(String limit, Result result) {
    if (limit.equals("-")) {
      return "";
    }
    double value;
    String name;
    int equals = limit.indexOf('=');
    if (equals < 0) {
      value = result.json().getAsJsonObject("limit").get("value").getAsDouble();
      name = limit;
    } else {
      value = other(limit.substring(0, equals), result).median();
      name = limit.substring(equals + 1);
    }
    return String.format(
        Locale.ROOT,
        "%s, %s (%.0f %%)",
        value(value, result.unit()),
        name,
        100 * result.median() / value);
  }

  private static String peer(String peer, Result result) {
    if (peer.equals("-")) {
      return "";
    }
    if (peer.equals("published")) {
      JsonObject own = result.json().getAsJsonObject("peer");
      return value(own.get("value").getAsDouble(), result.unit())
          + ", published: "
          + own.get("name").getAsString();
    }
    return Arrays.stream(peer.split(", ", -1))
        .map(one -> one.split("=", 2))
        .map(one -> value(other(one[0], result).median(), result.unit()) + ", " + one[1])
        .collect(Collectors.joining("; "));
  }

  private static Result other(String id, Result result) {
    return result
        .run()
        .find(id)
        .orElseThrow(() -> new IllegalArgumentException("no " + id + " beside " + result.id()));
  }

  private static String value(double value, String unit) {
    return switch (unit) {
      case "commands/s" -> short3(value) + "/s";
      case "ratio" -> String.format(Locale.ROOT, "%.2f", value);
      case "ns/command" -> short3(value) + " ns";
      default -> short3(value) + " " + unit;
    };
  }

  /** Three digits, with k and M where the number is long. */
  private static String short3(double value) {
    if (value >= 1e6) {
      return short3(value / 1e6) + " M";
    }
    if (value >= 1e4) {
      return short3(value / 1e3) + " k";
    }
    return String.format(Locale.ROOT, value >= 100 ? "%.0f" : "%.3g", value);
  }
}
