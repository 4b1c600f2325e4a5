package io.gpunvme.bench;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.gpunvme.bench.BenchResults.Result;
import io.gpunvme.bench.BenchResults.Run;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Collectors;

/** The page with all results: docs/benchmark-tables.md. */
final class BenchTables {
  private static final Map<String, String> MEANINGS =
      Map.ofEntries(
          Map.entry(
              "cpu.copy.4k",
              "one thread copying random 4 KiB blocks, nothing around it: the limit of the copying"
                  + " rows"),
          Map.entry(
              "queue.cpu.4k.inline",
              "the same blocks as Read commands; driver and strict controller on one thread"),
          Map.entry("queue.cpu.4k.thread", "the same, the controller on a thread of its own"),
          Map.entry(
              "queue.cpu.nocopy.inline",
              "as 4k.inline, but the controller checks and completes without moving data"),
          Map.entry("queue.cpu.nocopy.thread", "as 4k.thread, without moving data"),
          Map.entry(
              "start.jvm",
              "a Java virtual machine that does nothing: the floor of the start times"),
          Map.entry("start.help", "the built command, from start to exit"),
          Map.entry(
              "start.identify",
              "the same, bringing an embedded controller up and decoding what it says"),
          Map.entry(
              "start.python",
              "a Python program that imports gpunvme, reads 4 KiB of a file, and ends"),
          Map.entry(
              "queue.cpu.driver-alone",
              "submit, ring and poll in the driver, against a responder that only echoes CIDs"),
          Map.entry(
              "vfio-user.idle.no-client", "processor time of a served controller without a client"),
          Map.entry("vfio-user.idle.client", "the same with a client that does nothing"),
          Map.entry(
              "vfio-user.idle.first-read",
              "one read of 4 KiB after that, from the call to its return"));

  /** Results whose names have parts. */
  private static String served(String id) {
    String what =
        switch (id.split("\\.")[2]) {
          case "copy" -> "one thread copying random 4 KiB blocks, nothing around it";
          case "here" -> "random 4 KiB Read commands, the controller on a thread of this process";
          default -> "the same, the controller in another process, over vfio-user";
        };
    return what + (id.contains(".qd1.") ? ", one at a time" : ", 32 at a time");
  }

  private static String small(String id) {
    String[] parts = id.split("\\.");
    switch (parts[1]) {
      case "threads" -> {
        return "GpuStorage.reads of 4 KiB of one embedded SSD by so many threads";
      }
      case "beside" -> {
        return "one GpuStorage.read of an embedded SSD, 4 KiB, while it is in a long read";
      }
      default -> {}
    }
    String what =
        switch (parts[1]) {
          case "engine" -> "submit, ring and poll of one read on a queue pair";
          case "filechannel" -> "one FileChannel.read of a warm file";
          case "sim" -> "one GpuStorage.read of an embedded SSD";
          default -> "one GpuStorage.read of a warm file, path " + parts[1];
        };
    String from =
        switch (parts.length < 4 ? "" : parts[3]) {
          case "c" -> ", from C";
          case "python" -> ", from Python's main thread";
          case "python-worker" -> ", from another thread of Python";
          default -> "";
        };
    return what
        + ", "
        + (parts[2].equals("512") ? "512 bytes" : parts[2].replace("k", " KiB"))
        + from;
  }

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
                meaning(id),
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
    if (!(value instanceof JsonObject parts)) {
      return value.getAsString();
    }
    return parts.entrySet().stream()
        .map(e -> e.getKey() + " " + text(e.getValue()))
        .collect(Collectors.joining(", ", "(", ")"));
  }

  /** The peer's number and whose it is. */
  private static String peer(JsonObject r) {
    if (!r.has("peer")) {
      return "";
    }
    JsonObject peer = r.getAsJsonObject("peer");
    return number(peer.get("value").getAsDouble()) + " (" + peer.get("name").getAsString() + ")";
  }

  private static String meaning(String id) {
    if (id.startsWith("vfio-user.4k.")) {
      return served(id);
    }
    if (id.startsWith("small.")) {
      return small(id);
    }
    String exact = MEANINGS.get(id);
    return exact == null ? GpuBenchMeanings.of(id) : exact;
  }

  private static String number(double value) {
    if (value >= 1e6) {
      return String.format(Locale.ROOT, "%.2f M", value / 1e6);
    }
    return String.format(Locale.ROOT, value >= 1000 ? "%.0f" : "%.3g", value);
  }
}
