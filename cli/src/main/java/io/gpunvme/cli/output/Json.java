package io.gpunvme.cli.output;

import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonElement;
import com.google.gson.stream.JsonWriter;
import java.io.IOException;
import java.io.PrintStream;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Prints maps, lists, strings, numbers (arrays of long too), truth values and JSON elements. */
public final class Json {
  private static final double DECIMALS = 1e6;

  /** Loaded by the few commands that need it. */
  private static final class Elements {
    static final Gson GSON = new GsonBuilder().disableHtmlEscaping().create();
  }

  private Json() {}

  /** Prints one object, indented, and a line break. */
  public static void print(PrintStream out, Map<String, ?> object) {
    print(out, object, "  ");
  }

  /** Prints one object in one line. */
  public static void printLine(PrintStream out, Map<String, ?> object) {
    print(out, object, "");
  }

  private static void print(PrintStream out, Map<String, ?> object, String indent) {
    StringWriter text = new StringWriter();
    try (JsonWriter json = new JsonWriter(text)) {
      json.setIndent(indent);
      json.setHtmlSafe(false);
      value(json, object);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    out.println(text);
    out.flush();
  }

  private static void value(JsonWriter json, @Nullable Object value) throws IOException {
    switch (value) {
      case null -> json.nullValue();
      case JsonElement element -> Elements.GSON.toJson(element, json);
      case Map<?, ?> map -> {
        json.beginObject();
        for (Map.Entry<?, ?> entry : map.entrySet()) {
          json.name(String.valueOf(entry.getKey()));
          value(json, entry.getValue());
        }
        json.endObject();
      }
      case Iterable<?> list -> {
        json.beginArray();
        for (Object element : list) {
          value(json, element);
        }
        json.endArray();
      }
      case long[] numbers -> {
        json.beginArray();
        for (long number : numbers) {
          json.value(number);
        }
        json.endArray();
      }
      case Boolean truth -> json.value(truth);
      case Double number -> json.value(Math.round(number * DECIMALS) / DECIMALS);
      case Number number -> json.value(number);
      default -> json.value(value.toString());
    }
  }
}
