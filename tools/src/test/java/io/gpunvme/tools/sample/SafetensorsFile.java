package io.gpunvme.tools.sample;

import com.google.gson.stream.JsonReader;
import com.google.gson.stream.JsonToken;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * A strict reader of safetensors, written from the format's description and not from the writer.
 */
final class SafetensorsFile {
  private static final Map<String, Integer> BITS =
      Map.ofEntries(
          Map.entry("BOOL", 8),
          Map.entry("U8", 8),
          Map.entry("I8", 8),
          Map.entry("F8_E5M2", 8),
          Map.entry("F8_E4M3", 8),
          Map.entry("I16", 16),
          Map.entry("U16", 16),
          Map.entry("F16", 16),
          Map.entry("BF16", 16),
          Map.entry("I32", 32),
          Map.entry("U32", 32),
          Map.entry("F32", 32),
          Map.entry("I64", 64),
          Map.entry("U64", 64),
          Map.entry("F64", 64));

  record Tensor(String name, String dtype, List<Long> shape, long begin, long end) {
    int bytesPerElement() {
      return BITS.get(dtype) / 8;
    }
  }

  final Map<String, Tensor> tensors = new LinkedHashMap<>();
  final Map<String, String> metadata = new LinkedHashMap<>();
  final ByteBuffer data;
  final long dataStart;

  private SafetensorsFile(byte[] bytes) throws IOException {
    ByteBuffer file = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
    long length = file.getLong();
    check(length > 0 && length <= 100_000_000 && length <= file.remaining(), "header length");
    byte[] header = new byte[(int) length];
    file.get(header);
    check(header[0] == '{', "header starts with {");
    readHeader(header);
    dataStart = 8 + length;
    data = file.slice().order(ByteOrder.LITTLE_ENDIAN);
    checkTiling();
  }

  static SafetensorsFile read(Path file) throws IOException {
    return new SafetensorsFile(Files.readAllBytes(file));
  }

  private void readHeader(byte[] header) throws IOException {
    JsonReader json =
        new JsonReader(
            new InputStreamReader(new ByteArrayInputStream(header), StandardCharsets.UTF_8));
    json.beginObject();
    while (json.hasNext()) {
      String name = json.nextName();
      if (name.equals("__metadata__")) {
        json.beginObject();
        while (json.hasNext()) {
          check(metadata.put(json.nextName(), json.nextString()) == null, "metadata once");
        }
        json.endObject();
      } else {
        check(tensors.put(name, tensor(json, name)) == null, "duplicate " + name);
      }
    }
    json.endObject();
    check(json.peek() == JsonToken.END_DOCUMENT, "only spaces after the header");
  }

  private static Tensor tensor(JsonReader json, String name) throws IOException {
    String dtype = "";
    List<Long> shape = List.of();
    List<Long> offsets = List.of();
    json.beginObject();
    while (json.hasNext()) {
      switch (json.nextName()) {
        case "dtype" -> dtype = json.nextString();
        case "shape" -> shape = longs(json);
        case "data_offsets" -> offsets = longs(json);
        default -> throw new AssertionError("unknown key in " + name);
      }
    }
    json.endObject();
    check(BITS.containsKey(dtype), "dtype " + dtype);
    check(offsets.size() == 2, "offsets of " + name);
    return new Tensor(name, dtype, shape, offsets.get(0), offsets.get(1));
  }

  private static List<Long> longs(JsonReader json) throws IOException {
    List<Long> all = new ArrayList<>();
    json.beginArray();
    while (json.hasNext()) {
      all.add(json.nextLong());
    }
    json.endArray();
    return all;
  }

  private void checkTiling() {
    List<Tensor> byOffset = new ArrayList<>(tensors.values());
    byOffset.sort(
        (a, b) ->
            a.begin() != b.begin()
                ? Long.compare(a.begin(), b.begin())
                : Long.compare(a.end(), b.end()));
    long at = 0;
    for (Tensor t : byOffset) {
      check(t.begin() == at, "no hole before " + t.name());
      long elements = t.shape().stream().reduce(1L, Math::multiplyExact);
      check(t.end() - t.begin() == elements * t.bytesPerElement(), "bytes of " + t.name());
      at = t.end();
    }
    check(at == data.capacity(), "the file ends with the last tensor");
  }

  private static void check(boolean fine, String what) {
    if (!fine) {
      throw new AssertionError("not a safetensors file: " + what);
    }
  }
}
