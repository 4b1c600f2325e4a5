package io.gpunvme.tools.report;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.IOException;
import java.io.StringReader;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** Reads one result file strictly: what is missing, odd or too much is said with its place. */
final class ResultParser {
  private static final int MOST_RESULTS = 5000;
  private static final int MOST_FIELDS = 200;
  private static final int LONGEST_NAME = 300;
  private static final int LONGEST_TEXT = 4000;
  private static final int DEEPEST = 16;
  private static final Pattern PLACE = Pattern.compile(" at line \\d+ column \\d+");

  private final Path file;

  ResultParser(Path file) {
    this.file = file;
  }

  ResultFile parse(String text) throws ResultFileException {
    JsonObject top = object(json(text), "the file");
    JsonArray list = array(member(top, "results", "the file"), "results");
    if (list.size() > MOST_RESULTS) {
      throw bad("more than " + MOST_RESULTS + " results");
    }
    List<Result> results = new ArrayList<>();
    for (int i = 0; i < list.size(); i++) {
      results.add(result(list.get(i), "results[" + i + "]"));
    }
    Path parent = file.toAbsolutePath().normalize().getParent();
    Path folder = parent == null ? null : parent.getFileName();
    return new ResultFile(
        file,
        folder == null ? "" : folder.toString(),
        fields(member(top, "machine", "the file"), "machine"),
        text(member(top, "commit", "the file"), "commit", LONGEST_NAME),
        text(member(top, "date", "the file"), "date", LONGEST_NAME),
        results);
  }

  private JsonElement json(String text) throws ResultFileException {
    try (JsonReader reader = new JsonReader(new StringReader(text))) {
      reader.setStrictness(Strictness.STRICT);
      JsonElement element = JsonParser.parseReader(reader);
      // Strict: this fails by itself if anything follows.
      if (reader.peek() != JsonToken.END_DOCUMENT) {
        throw bad("not JSON: something follows");
      }
      return element;
    } catch (ResultFileException e) {
      throw e;
    } catch (IOException | JsonParseException | NumberFormatException e) {
      throw bad("not JSON" + place(e));
    }
  }

  /** Where the reader stopped; what it says besides is for programmers. */
  private static String place(Exception e) {
    Matcher matcher = PLACE.matcher(String.valueOf(e.getMessage()));
    return matcher.find() ? matcher.group() : "";
  }

  private Result result(JsonElement element, String where) throws ResultFileException {
    JsonObject json = object(element, where);
    String id = text(member(json, "id", where), where + ".id", LONGEST_NAME);
    double median = number(member(json, "median", where), where + ".median");
    JsonElement conditions = json.get("conditions");
    Map<String, String> flat = conditions == null ? Map.of() : fields(conditions, id);
    JsonElement min = json.get("min");
    JsonElement max = json.get("max");
    JsonElement samples = json.get("samples");
    JsonElement verified = json.get("verified");
    return new Result(
        id,
        text(member(json, "unit", where), where + ".unit", LONGEST_NAME),
        median,
        min == null ? median : Math.min(median, number(min, where + ".min")),
        max == null ? median : Math.max(median, number(max, where + ".max")),
        samples == null ? 1 : (long) number(samples, where + ".samples"),
        flat,
        conditions == null
            ? List.of()
            : new LatencyParser(flat).read(object(conditions, where).get("latency_ns")),
        reference(json.get("limit"), "id", where + ".limit"),
        reference(json.get("peer"), "name", where + ".peer"),
        verified instanceof JsonPrimitive p && p.isBoolean() && p.getAsBoolean());
  }

  private Result.@Nullable Reference reference(
      @Nullable JsonElement element, String name, String where) throws ResultFileException {
    if (element == null || element.isJsonNull()) {
      return null;
    }
    JsonObject json = object(element, where);
    return new Result.Reference(
        text(member(json, name, where), where + "." + name, LONGEST_NAME),
        number(member(json, "value", where), where + ".value"));
  }

  // ---- pieces

  private Map<String, String> fields(JsonElement element, String where) throws ResultFileException {
    Map<String, String> all = new LinkedHashMap<>();
    JsonObject json = object(element, where);
    for (Map.Entry<String, JsonElement> entry : json.entrySet()) {
      flatten(all, entry.getKey(), entry.getValue(), where, 1);
    }
    return all;
  }

  private void flatten(
      Map<String, String> all, String name, JsonElement value, String where, int depth)
      throws ResultFileException {
    if (all.size() >= MOST_FIELDS || name.length() > LONGEST_NAME || depth > DEEPEST) {
      throw bad(where + " has too many, too long or too deep fields");
    }
    if (value instanceof JsonObject object) {
      for (Map.Entry<String, JsonElement> entry : object.entrySet()) {
        flatten(all, name + "." + entry.getKey(), entry.getValue(), where, depth + 1);
      }
    } else if (value instanceof JsonArray list) {
      for (int i = 0; i < list.size(); i++) {
        flatten(all, name + "[" + i + "]", list.get(i), where, depth + 1);
      }
    } else if (value instanceof JsonPrimitive primitive) {
      String text = primitive.getAsString();
      if (text.length() > LONGEST_TEXT) {
        throw bad(where + "." + name + " is longer than " + LONGEST_TEXT + " characters");
      }
      all.put(name, text);
    }
  }

  private JsonElement member(JsonObject json, String name, String where)
      throws ResultFileException {
    JsonElement element = json.get(name);
    if (element == null) {
      throw bad(where + " has no " + name);
    }
    return element;
  }

  private JsonObject object(JsonElement element, String where) throws ResultFileException {
    if (element instanceof JsonObject object) {
      return object;
    }
    throw bad(where + " is not an object");
  }

  private JsonArray array(JsonElement element, String where) throws ResultFileException {
    if (element instanceof JsonArray array) {
      return array;
    }
    throw bad(where + " is not a list");
  }

  private String text(JsonElement element, String where, int longest) throws ResultFileException {
    if (!(element instanceof JsonPrimitive primitive) || primitive.isBoolean()) {
      throw bad(where + " is not text");
    }
    String text = primitive.getAsString();
    if (text.isEmpty() || text.length() > longest) {
      throw bad(where + " is empty or longer than " + longest + " characters");
    }
    return text;
  }

  private double number(JsonElement element, String where) throws ResultFileException {
    if (element instanceof JsonPrimitive primitive && primitive.isNumber()) {
      double value = primitive.getAsDouble();
      if (Double.isFinite(value) && value >= 0) {
        return value;
      }
    }
    throw bad(where + " is not a finite number of 0 or more");
  }

  private ResultFileException bad(String why) {
    return new ResultFileException(file, why);
  }
}
