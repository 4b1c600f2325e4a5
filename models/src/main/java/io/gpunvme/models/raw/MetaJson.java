package io.gpunvme.models.raw;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonPrimitive;
import io.gpunvme.models.format.MetaValue;
import io.gpunvme.models.format.MetaValue.Flag;
import io.gpunvme.models.format.MetaValue.Items;
import io.gpunvme.models.format.MetaValue.Real;
import io.gpunvme.models.format.MetaValue.Text;
import io.gpunvme.models.format.MetaValue.Whole;
import io.gpunvme.models.format.StrictJson;
import io.gpunvme.models.format.ValueType;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;

/**
 * Values of a model's metadata in JSON, types and all: {@code ["U32", "7"]}, {@code ["ARRAY",
 * "STRING", ["a", "b"]]}; items that are arrays themselves are written {@code ["U8", ["1"]]}.
 */
final class MetaJson {
  /** More than readers of GGUF take. */
  private static final int DEEPEST = 16;

  private MetaJson() {}

  /** Values of an array, in memory. */
  private record ListItems(ValueType elementType, List<MetaValue> values) implements Items {
    @Override
    public long count() {
      return values.size();
    }

    @Override
    public void forFirst(long most, Consumer<MetaValue> to) {
      values.stream().limit(most).forEach(to);
    }

    @Override
    public String toString() {
      return "%d of %s".formatted(values.size(), elementType);
    }
  }

  static JsonElement write(MetaValue value) {
    JsonArray json = new JsonArray();
    json.add(value.type().name());
    if (value instanceof Items items) {
      json.addAll(array(items));
    } else {
      json.add(value.toString());
    }
    return json;
  }

  private static JsonArray array(Items items) {
    JsonArray json = new JsonArray();
    json.add(items.elementType().name());
    JsonArray values = new JsonArray();
    items.forEach(
        v -> values.add(v instanceof Items inner ? array(inner) : new JsonPrimitive(v.toString())));
    json.add(values);
    return json;
  }

  /** Reads one value. */
  static MetaValue read(StrictJson json) throws IOException {
    Value value = new Value(json);
    json.array(value::part);
    return value.finished();
  }

  /** The parts of one value, in the order in which they come. */
  private static final class Value {
    private final StrictJson json;
    private int parts;
    private ValueType type = ValueType.STRING;
    private final List<MetaValue> read = new ArrayList<>();
    private final Elements elements;

    Value(StrictJson json) {
      this.json = json;
      elements = new Elements(json, 1);
    }

    void part() throws IOException {
      int number = parts++;
      if (number == 0) {
        type = type(json);
      } else if (type == ValueType.ARRAY) {
        elements.part();
      } else if (number == 1) {
        read.add(scalar(json, type));
      } else {
        throw json.corrupt("a value of metadata has too many parts");
      }
    }

    MetaValue finished() {
      if (type == ValueType.ARRAY) {
        return elements.finished();
      }
      if (read.isEmpty()) {
        throw json.corrupt("a value of metadata is missing");
      }
      return read.getFirst();
    }
  }

  /** The type of an array's items, and the items. */
  private static final class Elements {
    private final StrictJson json;
    private final int depth;
    private int parts;
    private ValueType type = ValueType.STRING;
    private final List<MetaValue> values = new ArrayList<>();

    Elements(StrictJson json, int depth) {
      this.json = json;
      this.depth = depth;
    }

    void part() throws IOException {
      switch (parts++) {
        case 0 -> type = type(json);
        case 1 -> json.array(this::item);
        default -> throw json.corrupt("an array of metadata has too many parts");
      }
    }

    private void item() throws IOException {
      if (type != ValueType.ARRAY) {
        values.add(scalar(json, type));
        return;
      }
      if (depth == DEEPEST) {
        throw json.corrupt("arrays in arrays more than " + DEEPEST + " deep");
      }
      Elements inner = new Elements(json, depth + 1);
      json.array(inner::part);
      values.add(inner.finished());
    }

    MetaValue finished() {
      if (parts != 2) {
        throw json.corrupt("an array of metadata needs a type and items");
      }
      return new ListItems(type, List.copyOf(values));
    }
  }

  private static ValueType type(StrictJson json) throws IOException {
    String name = json.text();
    for (ValueType type : ValueType.values()) {
      if (type.name().equals(name)) {
        return type;
      }
    }
    throw json.corrupt("metadata of an unknown type");
  }

  private static MetaValue scalar(StrictJson json, ValueType type) throws IOException {
    String text = json.text();
    try {
      return switch (type) {
        case STRING -> new Text(text);
        case BOOL -> new Flag(truth(text));
        case F32 -> new Real(type, Float.parseFloat(text));
        case F64 -> new Real(type, Double.parseDouble(text));
        case U64 -> new Whole(type, Long.parseUnsignedLong(text));
        case U8 -> whole(type, text, 0, 0xFF);
        case I8 -> whole(type, text, Byte.MIN_VALUE, Byte.MAX_VALUE);
        case U16 -> whole(type, text, 0, 0xFFFF);
        case I16 -> whole(type, text, Short.MIN_VALUE, Short.MAX_VALUE);
        case U32 -> whole(type, text, 0, 0xFFFF_FFFFL);
        case I32 -> whole(type, text, Integer.MIN_VALUE, Integer.MAX_VALUE);
        case I64 -> whole(type, text, Long.MIN_VALUE, Long.MAX_VALUE);
        case ARRAY -> throw new NumberFormatException("an array is not text");
      };
    } catch (NumberFormatException e) {
      throw json.corrupt("metadata that is not " + type);
    }
  }

  private static boolean truth(String text) {
    if (text.equals("true") || text.equals("false")) {
      return text.equals("true");
    }
    throw new NumberFormatException(text);
  }

  private static Whole whole(ValueType type, String text, long least, long most) {
    long value = Long.parseLong(text);
    if (value < least || value > most) {
      throw new NumberFormatException(text);
    }
    return new Whole(type, value);
  }
}
