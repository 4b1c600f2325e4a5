package io.gpunvme.models;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import com.google.gson.JsonPrimitive;
import io.gpunvme.models.format.MetaValue;
import io.gpunvme.storage.fs.BlockReader;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;

/** How many experts a router chooses for a token, as a model's configuration says it. */
final class ExpertsPerToken {
  private static final String CONFIGURATION = "config.json";
  private static final String NAME = "num_experts_per_tok";

  /** What has the configuration of the language model in models of several kinds. */
  private static final String TEXT = "text_config";

  private static final String GGUF_ARCHITECTURE = "general.architecture";
  private static final String GGUF_NAME = ".expert_used_count";
  private static final int LONGEST = 1 << 20;

  private ExpertsPerToken() {}

  /** Of a GGUF file what it says itself, of others what the file beside them does. */
  static OptionalInt of(WeightSource source) {
    Map<String, MetaValue> metadata = source.metadata();
    MetaValue architecture = metadata.get(GGUF_ARCHITECTURE);
    if (architecture != null) {
      return metadata.get(architecture + GGUF_NAME) instanceof MetaValue.Whole(_, long count)
          ? positive(count)
          : OptionalInt.empty();
    }
    Optional<BlockReader> file = source.beside(CONFIGURATION);
    if (file.isEmpty()) {
      return OptionalInt.empty();
    }
    try (BlockReader reader = file.get()) {
      return reader.size() > LONGEST ? OptionalInt.empty() : of(text(reader));
    }
  }

  private static String text(BlockReader reader) {
    byte[] bytes = new byte[(int) reader.size()];
    reader.read(0, MemorySegment.ofArray(bytes));
    return new String(bytes, StandardCharsets.UTF_8);
  }

  private static OptionalInt of(String json) {
    try {
      // Not strict: Python writes Infinity.
      return JsonParser.parseString(json) instanceof JsonObject all ? of(all) : OptionalInt.empty();
    } catch (JsonParseException | ArithmeticException | NumberFormatException e) {
      return OptionalInt.empty();
    }
  }

  private static OptionalInt of(JsonObject all) {
    JsonElement told = all.get(NAME);
    // Python writes null for what is not set.
    if ((told == null || told.isJsonNull()) && all.get(TEXT) instanceof JsonObject text) {
      told = text.get(NAME);
    }
    return told instanceof JsonPrimitive number && number.isNumber()
        ? positive(number.getAsBigDecimal().longValueExact())
        : OptionalInt.empty();
  }

  private static OptionalInt positive(long count) {
    return count > 0 && count <= Integer.MAX_VALUE
        ? OptionalInt.of((int) count)
        : OptionalInt.empty();
  }
}
