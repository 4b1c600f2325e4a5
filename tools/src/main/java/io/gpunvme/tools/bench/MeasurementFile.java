package io.gpunvme.tools.bench;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.Locale;
import java.util.Map;

/**
 * The results of one run as a file: {@code <folder>/<machine>/<date>-<commit>.json}, as {@code
 * gpunvme bench report} reads it. Written again after each result, so a run that is cut off keeps
 * what it has.
 */
public final class MeasurementFile {
  private static final Gson GSON =
      new GsonBuilder().setPrettyPrinting().disableHtmlEscaping().create();

  private final Path path;
  private final JsonObject file = new JsonObject();
  private final JsonArray results = new JsonArray();

  private MeasurementFile(Path path, BenchMachine machine, String commit, String date) {
    this.path = path;
    file.add("machine", machine.toJson());
    file.addProperty("commit", commit);
    file.addProperty("date", date);
    file.add("results", results);
  }

  /**
   * One that takes the place of another one of the same day and commit.
   *
   * @param folder of all result files; made with the machine's folder in it
   * @param commit what was measured
   */
  public static MeasurementFile replacing(Path folder, BenchMachine machine, String commit)
      throws IOException {
    String date = LocalDate.now(ZoneOffset.UTC).toString();
    Path own = Files.createDirectories(folder.resolve(machine.id()));
    return new MeasurementFile(own.resolve(date + "-" + commit + ".json"), machine, commit, date);
  }

  /** One beside others of the same day and commit: its name then ends with a number. */
  public static MeasurementFile beside(Path folder, BenchMachine machine, String commit)
      throws IOException {
    MeasurementFile first = replacing(folder, machine, commit);
    String date = first.file.get("date").getAsString();
    Path free = first.path;
    for (int i = 2; Files.exists(free); i++) {
      free = first.path.resolveSibling("%s-%s-%d.json".formatted(date, commit, i));
    }
    return new MeasurementFile(free, machine, commit, date);
  }

  /** Where it is. */
  public Path path() {
    return path;
  }

  /** Adds a result and writes the file. */
  public void add(Measurement measurement) throws IOException {
    results.add(json(measurement));
    Path next = path.resolveSibling(path.getFileName() + ".next");
    Files.writeString(next, GSON.toJson(file) + "\n");
    Files.move(next, path, StandardCopyOption.REPLACE_EXISTING);
  }

  /** A result as it is in such files; numbers have four digits. */
  public static JsonObject json(Measurement m) {
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
      json.add("limit", reference("id", limit.id(), limit.value(), m));
    }
    Measurement.Peer peer = m.peer();
    if (peer != null) {
      json.add("peer", reference("name", peer.name(), peer.value(), m));
    }
    // One whose counts or data were wrong is never made.
    json.addProperty("verified", true);
    return json;
  }

  private static JsonObject reference(String key, String name, double value, Measurement m) {
    JsonObject one = new JsonObject();
    one.addProperty(key, name);
    one.addProperty("value", round(value));
    one.addProperty("ratio", round(m.median() / value));
    return one;
  }

  private static double round(double value) {
    return Double.parseDouble(String.format(Locale.ROOT, "%.4g", value));
  }
}
