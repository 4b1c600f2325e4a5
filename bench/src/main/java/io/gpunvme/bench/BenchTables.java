package io.gpunvme.bench;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import io.gpunvme.bench.BenchResults.Result;
import io.gpunvme.bench.BenchResults.Run;
import io.gpunvme.tools.report.Meanings;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;

/** The page with all results: docs/benchmark-tables.md. */
final class BenchTables {
  private BenchTables() {}

  /** The page: a list of the runs, then a table for each. */
  static String page(BenchResults results) {
    StringBuilder page = new StringBuilder();
    page.append("# Benchmark tables\n\n");
    page.append(
        "Every result of every run, newest first. `scripts/bench` generates this page from");
    page.append(" the files under\n`bench/results/`. [benchmarks.md](benchmarks.md) has the");
    page.append(" figures that matter and explains them.\n\n");
    page.append("| run | machine | results |\n|---|---|---|\n");
    for (Run run : results.runs()) {
      String title = title(run);
      page.append(
          "| [%s](#%s) | %s | %s |%n"
              .formatted(
                  title,
                  title.replace(",", "").replace(' ', '-'),
                  run.machine(),
                  run.results().stream()
                      .map(result -> result.id().replaceFirst("\\..*", ""))
                      .distinct()
                      .collect(Collectors.joining(", "))));
    }
    results.runs().forEach(run -> section(page, run));
    return page.toString();
  }

  private static String title(Run run) {
    return run.date() + ", commit " + run.commit();
  }

  private static void section(StringBuilder page, Run run) {
    page.append("\n## ").append(title(run)).append("\n\n");
    page.append(
        run.json().getAsJsonObject("machine").entrySet().stream()
            .map(e -> e.getKey() + " " + e.getValue().getAsString())
            .collect(Collectors.joining(" · ")));
    List<JsonObject> results = run.results().stream().map(Result::json).toList();
    boolean peers = results.stream().anyMatch(result -> result.has("peer"));
    page.append("\n\n| id | what | median | min … max | of the limit |");
    page.append(peers ? " peer |" : "").append(" samples | conditions |\n");
    page.append(peers ? "|---" : "").append("|---|---|---|---|---|---|---|\n");
    results.forEach(result -> row(page, result, peers));
  }

  private static void row(StringBuilder page, JsonObject r, boolean peers) {
    String id = r.get("id").getAsString();
    String unit = r.get("unit").getAsString();
    String limit =
        r.has("limit")
            ? String.format(
                Locale.ROOT,
                "%.0f %% of %s",
                100 * r.getAsJsonObject("limit").get("ratio").getAsDouble(),
                r.getAsJsonObject("limit").get("id").getAsString())
            : "";
    String conditions =
        r.getAsJsonObject("conditions").entrySet().stream()
            .map(e -> e.getKey().replace('_', ' ') + " " + text(e.getValue()))
            .collect(Collectors.joining(", "));
    page.append(
        "| `%s` | %s | **%s** %s | %s … %s | %s |%s %d | %s |%n"
            .formatted(
                id,
                Meanings.of(id),
                number(r.get("median").getAsDouble()),
                unit,
                number(r.get("min").getAsDouble()),
                number(r.get("max").getAsDouble()),
                limit,
                peers ? " " + peer(r) + " |" : "",
                r.get("samples").getAsInt(),
                conditions));
  }

  /** A condition's value; one that has parts, part by part. */
  private static String text(JsonElement value) {
    return switch (value) {
      case JsonObject parts ->
          parts.entrySet().stream()
              .map(e -> e.getKey() + " " + text(e.getValue()))
              .collect(Collectors.joining(", ", "(", ")"));
      case JsonArray parts ->
          parts.asList().stream()
              .map(BenchTables::text)
              .collect(Collectors.joining(", ", "(", ")"));
      case JsonNull _ -> "none";
      default -> value.getAsString();
    };
  }

  /** The peer's number and whose it is. */
  private static String peer(JsonObject r) {
    if (!r.has("peer")) {
      return "";
    }
    JsonObject peer = r.getAsJsonObject("peer");
    return number(peer.get("value").getAsDouble()) + " (" + peer.get("name").getAsString() + ")";
  }

  private static String number(double value) {
    if (value >= 1e6) {
      return String.format(Locale.ROOT, "%.2f M", value / 1e6);
    }
    return String.format(Locale.ROOT, value >= 1000 ? "%.0f" : "%.3g", value);
  }
}
