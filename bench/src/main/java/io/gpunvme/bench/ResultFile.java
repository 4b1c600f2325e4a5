package io.gpunvme.bench;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.core.bench.Measurement;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.Locale;
import java.util.Map;

/**
 * The results of one run on a GPU as a file: {@code <folder>/<machine>/<date>-<commit>.json}.
 * Written again after each result, so a run that is cut off keeps what it has.
 */
final class ResultFile {
  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create();

  private final Path path;
  private final JsonObject file = new JsonObject();
  private final JsonArray results = new JsonArray();

  /**
   * @param folder of all result files; made with the machine's folder in it
   * @param commit what was measured
   */
  ResultFile(Path folder, GpuBenchMachine machine, String commit) throws IOException {
    String date = LocalDate.now(ZoneOffset.UTC).toString();
    path = folder.resolve(machine.id()).resolve(date + "-" + commit + ".json");
    Files.createDirectories(path.getParent());
    file.add("machine", machine.toJson());
    file.addProperty("commit", commit);
    file.addProperty("date", date);
    file.add("results", results);
  }

  /** Where it is. */
  Path path() {
    return path;
  }

  /** Adds a result and writes the file. */
  void add(Measurement measurement) throws IOException {
    results.add(json(measurement));
    Path next = path.resolveSibling(path.getFileName() + ".next");
    Files.writeString(next, GSON.toJson(file) + "\n");
    Files.move(next, path, StandardCopyOption.REPLACE_EXISTING);
  }

  /** A result as the design's "Result files" has it. */
  static JsonObject json(Measurement m) {
    JsonObject json = new JsonObject();
    json.addProperty("id", m.id());
    json.addProperty("unit", m.unit());
    json.addProperty("median", round(m.median()));
    json.addProperty("min", round(m.min()));
    json.addProperty("max", round(m.max()));
    json.addProperty("samples", m.samples().length);
    JsonObject conditions = new JsonObject();
    for (Map.Entry<String, Object> entry : m.conditions().entrySet()) {
      conditions.add(
          entry.getKey(),
          GSON.toJsonTree(entry.getValue() instanceof Double d ? round(d) : entry.getValue()));
    }
    json.add("conditions", conditions);
    Measurement.Limit limit = m.limit();
    if (limit != null) {
      JsonObject one = new JsonObject();
      one.addProperty("id", limit.id());
      one.addProperty("value", round(limit.value()));
      one.addProperty("ratio", round(m.median() / limit.value()));
      json.add("limit", one);
    }
    Measurement.Peer other = m.peer();
    if (other != null) {
      JsonObject one = new JsonObject();
      one.addProperty("name", other.name());
      one.addProperty("value", round(other.value()));
      one.addProperty("ratio", round(m.median() / other.value()));
      json.add("peer", one);
    }
    GpuBenchPeers.of(m.id())
        .ifPresent(
            peer -> {
              JsonObject one = new JsonObject();
              one.addProperty("name", peer.name());
              one.addProperty("value", peer.value());
              json.add("peer", one);
            });
    // One whose counts or data were wrong is never made.
    json.addProperty("verified", true);
    return json;
  }

  private static double round(double value) {
    return Double.parseDouble(String.format(Locale.ROOT, "%.4g", value));
  }
}
