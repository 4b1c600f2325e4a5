package io.gpunvme.storage.kind;

import com.google.gson.Strictness;
import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import com.google.gson.stream.MalformedJsonException;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Reason;
import java.io.EOFException;
import java.io.IOException;
import java.io.Reader;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Kinds as JSON, read strictly: what is misspelt or said twice is an error, not ignored. */
final class KindsJson {
  private static final String BLOCK_SIZE = "block_size";
  private static final String KINDS = "kinds";
  private static final String NUMBER = "number";
  private static final String ELEMENT = "element";
  private static final String OFFSET = "offset";
  private static final String LENGTH = "length";
  private static final String START_LBA = "start_lba";
  private static final String BLOCKS = "blocks";
  private static final Set<String> BYTE_KEYS = Set.of(OFFSET, LENGTH);
  private static final Set<String> BLOCK_KEYS = Set.of(START_LBA, BLOCKS);
  private static final Set<String> OTHER_KEYS = Set.of(ELEMENT, NUMBER);

  private final JsonReader json;
  private final ReadRequest.Builder request = ReadRequest.builder();
  private int blockSize;

  private KindsJson(Reader reader) {
    json = new JsonReader(reader);
    json.setStrictness(Strictness.STRICT);
  }

  static ReadRequest read(Reader reader) throws IOException {
    KindsJson kinds = new KindsJson(reader);
    try {
      kinds.readAll();
    } catch (MalformedJsonException | EOFException | IllegalStateException e) {
      throw new InvalidRequestException(
          "kinds: not JSON of kinds: " + Reason.ofJson(e.getMessage()));
    }
    return kinds.request.build();
  }

  private void readAll() throws IOException {
    boolean seen = false;
    json.beginObject();
    while (json.hasNext()) {
      String key = json.nextName();
      if (key.equals(BLOCK_SIZE) && blockSize == 0 && !seen) {
        long size = number();
        if (size < 1 || size > Integer.MAX_VALUE) {
          throw wrong("a block size of " + size + " bytes is not possible");
        }
        blockSize = (int) size;
      } else if (key.equals(KINDS) && !seen) {
        seen = true;
        readKinds();
      } else {
        throw wrong("'" + key + "' is unknown or out of order: first block_size, then kinds");
      }
    }
    json.endObject();
    if (json.peek() != JsonToken.END_DOCUMENT) {
      throw wrong("more than one object");
    }
    if (!seen) {
      throw wrong("'kinds' is missing");
    }
  }

  private void readKinds() throws IOException {
    json.beginObject();
    while (json.hasNext()) {
      String name = json.nextName();
      if (name.isEmpty()) {
        throw wrong("a kind without a name");
      }
      add(name, keys());
    }
    json.endObject();
  }

  private Map<String, Long> keys() throws IOException {
    Map<String, Long> keys = new HashMap<>();
    json.beginObject();
    while (json.hasNext()) {
      String key = json.nextName();
      boolean known =
          BYTE_KEYS.contains(key) || BLOCK_KEYS.contains(key) || OTHER_KEYS.contains(key);
      if (!known || keys.put(key, number()) != null) {
        throw wrong("'" + key + "' is " + (known ? "there twice" : "unknown"));
      }
    }
    json.endObject();
    return keys;
  }

  private void add(String name, Map<String, Long> keys) {
    boolean numbered = isNumber(name);
    boolean blocks = keys.keySet().containsAll(BLOCK_KEYS) && !overlaps(keys, BYTE_KEYS);
    boolean bytes = keys.keySet().containsAll(BYTE_KEYS) && !overlaps(keys, BLOCK_KEYS);
    if (!keys.containsKey(ELEMENT) || blocks == bytes || (numbered && keys.containsKey(NUMBER))) {
      throw wrong(
          "kind '%s' needs element, and either offset and length or start_lba and blocks%s"
              .formatted(name, numbered ? ", and no second number" : ""));
    }
    if (blocks && blockSize == 0) {
      throw wrong("kind '" + name + "' is in blocks, but no block_size stands before it");
    }
    request.add(
        new Kind(
            numbered ? Integer.parseInt(name) : given(keys.get(NUMBER)),
            numbered ? "" : name,
            blocks ? blockBytes(value(keys, START_LBA), blockSize) : value(keys, OFFSET),
            blocks ? blockBytes(value(keys, BLOCKS), blockSize) : value(keys, LENGTH),
            value(keys, ELEMENT)));
  }

  private static boolean overlaps(Map<String, Long> keys, Set<String> others) {
    return keys.keySet().stream().anyMatch(others::contains);
  }

  private static long value(Map<String, Long> keys, String key) {
    return keys.getOrDefault(key, -1L);
  }

  private int given(@Nullable Long number) {
    if (number == null) {
      return request.nextNumber();
    }
    if (number < 0 || number > Integer.MAX_VALUE - 1) {
      throw wrong("a kind number of " + number + " is outside 0.." + (Integer.MAX_VALUE - 1));
    }
    return number.intValue();
  }

  private long number() throws IOException {
    if (json.peek() == JsonToken.NUMBER) {
      String text = json.nextString();
      if (text.matches("-?\\d{1,19}")) {
        try {
          return Long.parseLong(text);
        } catch (NumberFormatException e) {
          // 19 digits that are too many: said below.
        }
      }
      throw wrong(text + " is not a whole number below 2^63");
    }
    throw wrong("a number is expected");
  }

  private InvalidRequestException wrong(String what) {
    return new InvalidRequestException("kinds, at " + json.getPath() + ": " + what);
  }

  /** Whether that is the number of a kind in decimal. */
  static boolean isNumber(String name) {
    return name.matches("0|[1-9]\\d{0,8}");
  }

  static long blockBytes(long blocks, int blockSize) {
    if (blockSize < 1 || (blocks > 0 && blocks > Long.MAX_VALUE / blockSize)) {
      throw new InvalidRequestException(
          blocks + " blocks of " + blockSize + " bytes are 2^63 bytes or more");
    }
    return blocks * blockSize;
  }
}
