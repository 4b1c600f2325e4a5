package io.gpunvme.tools.fleet;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Printable;
import java.io.IOException;
import java.io.InputStream;
import java.io.StringReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;
import java.util.Set;

/**
 * The value of each parameter, and where it comes from. Immutable.
 *
 * <p>A file of them is a JSON object: {@code {"ssd-read": {"value": 13.5, "kind": "measured",
 * "source": "fio, 2026-11-28"}, "nic": {"value": 100}}}. The resource {@code parameters.json} has
 * them all.
 */
public final class Parameters {
  private static final String RESOURCE = "parameters.json";
  private static final long LONGEST_FILE = 1 << 20;
  private static final int LONGEST_SOURCE = 300;
  private static final Set<String> FIELDS = Set.of("value", "kind", "source");

  /** Where a value comes from. */
  public enum Kind {
    /** Measured, with its result as the source. */
    MEASURED,
    /** What the software does unless told otherwise. */
    DEFAULT,
    /** Not measured by this project. */
    ASSUMED,
    /** By the caller. */
    GIVEN;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /**
   * One of them.
   *
   * @param number in the parameter's unit
   */
  public record Value(double number, Kind kind, String source) {}

  private final Map<Parameter, Value> values;

  private Parameters(Map<Parameter, Value> values) {
    this.values = Collections.unmodifiableMap(new EnumMap<>(values));
  }

  /** Those that come with the program. */
  public static Parameters defaults() {
    try (InputStream in = Parameters.class.getResourceAsStream(RESOURCE)) {
      if (in == null) {
        throw new IllegalStateException(RESOURCE + " is missing");
      }
      Map<Parameter, Value> values =
          parse(RESOURCE, new String(in.readAllBytes(), StandardCharsets.UTF_8));
      if (values.size() < Parameter.values().length) {
        throw new IllegalStateException(RESOURCE + " has only " + values.keySet());
      }
      return new Parameters(values);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * These, with those of a file in their place.
   *
   * @throws InvalidRequestException if it is no file of parameters; the message says what is wrong
   * @throws IOException if it cannot be read
   */
  public Parameters with(Path file) throws IOException {
    if (Files.isDirectory(file)) {
      throw new InvalidRequestException(file + " is a folder, not a file of parameters");
    }
    byte[] bytes;
    try (InputStream in = Files.newInputStream(file)) {
      bytes = in.readNBytes((int) LONGEST_FILE + 1);
    }
    if (bytes.length > LONGEST_FILE) {
      throw new InvalidRequestException(file + ": more than 1 MiB is no file of parameters");
    }
    Map<Parameter, Value> all = new EnumMap<>(values);
    all.putAll(parse(file.toString(), new String(bytes, StandardCharsets.UTF_8)));
    return new Parameters(all);
  }

  /**
   * These, with one value by an assignment such as {@code nic=100GB/s}.
   *
   * @throws InvalidRequestException if there is no such parameter or value
   */
  public Parameters with(String assignment) {
    int at = assignment.indexOf('=');
    if (at < 0) {
      throw new InvalidRequestException(
          "'%s' is not NAME=VALUE, such as nic=100GB/s".formatted(Printable.quote(assignment)));
    }
    Parameter parameter = Parameter.named(assignment.substring(0, at));
    return with(parameter, parameter.parse(assignment.substring(at + 1)));
  }

  /**
   * These, with another value of one, in its unit.
   *
   * @throws InvalidRequestException if it is out of range
   */
  public Parameters with(Parameter parameter, double number) {
    Map<Parameter, Value> all = new EnumMap<>(values);
    all.put(parameter, new Value(parameter.checked(number), Kind.GIVEN, "by the caller"));
    return new Parameters(all);
  }

  /** All, in the order of {@link Parameter}. */
  public Map<Parameter, Value> values() {
    return values;
  }

  /** In bytes, bytes a second, seconds or as a count. */
  double get(Parameter parameter) {
    Value value = values.get(parameter);
    if (value == null) {
      throw new IllegalStateException("no " + parameter);
    }
    return value.number() * parameter.scale();
  }

  // ---- files

  private static Map<Parameter, Value> parse(String file, String text) {
    Map<Parameter, Value> values = new EnumMap<>(Parameter.class);
    for (Map.Entry<String, JsonElement> entry : object(file, text).entrySet()) {
      try {
        Parameter parameter = Parameter.named(entry.getKey());
        values.put(parameter, value(file, parameter, entry.getValue()));
      } catch (InvalidRequestException e) {
        throw new InvalidRequestException(file + ": " + e.getMessage());
      }
    }
    return values;
  }

  private static JsonObject object(String file, String text) {
    try (JsonReader reader = new JsonReader(new StringReader(text))) {
      reader.setStrictness(Strictness.STRICT);
      JsonElement element = JsonParser.parseReader(reader);
      // Strict: this fails by itself if anything follows.
      if (reader.peek() == JsonToken.END_DOCUMENT && element instanceof JsonObject object) {
        return object;
      }
    } catch (IOException | JsonParseException | NumberFormatException e) {
      // Said below: what the reader says is for programmers.
    }
    throw new InvalidRequestException(
        file + " is not a JSON object of parameters, such as {\"nic\": {\"value\": 100}}");
  }

  private static Value value(String file, Parameter parameter, JsonElement element) {
    if (!(element instanceof JsonObject object)
        || !(object.get("value") instanceof JsonPrimitive number)
        || !number.isNumber()) {
      throw new InvalidRequestException(
          "%s is not an object with a number 'value'".formatted(parameter));
    }
    object
        .keySet()
        .forEach(
            key -> {
              if (!FIELDS.contains(key)) {
                throw new InvalidRequestException(
                    "%s has '%s'; there are value, kind, source"
                        .formatted(parameter, Printable.quote(key)));
              }
            });
    String kind = text(parameter, object, "kind", Kind.GIVEN.toString());
    return new Value(
        parameter.checked(number.getAsDouble()),
        Arrays.stream(Kind.values())
            .filter(one -> one.toString().equals(kind))
            .findFirst()
            .orElseThrow(
                () ->
                    new InvalidRequestException(
                        "%s: kind '%s' is not one of measured, default, assumed, given"
                            .formatted(parameter, Printable.quote(kind)))),
        text(parameter, object, "source", file));
  }

  private static String text(Parameter parameter, JsonObject object, String name, String missing) {
    JsonElement element = object.get(name);
    if (element == null) {
      return missing;
    }
    if (element instanceof JsonPrimitive text
        && text.isString()
        && text.getAsString().length() <= LONGEST_SOURCE) {
      return text.getAsString();
    }
    throw new InvalidRequestException(
        "%s: '%s' is not a text of at most %d characters"
            .formatted(parameter, name, LONGEST_SOURCE));
  }
}
