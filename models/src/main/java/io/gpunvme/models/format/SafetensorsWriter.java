package io.gpunvme.models.format;

import com.google.gson.stream.JsonWriter;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Printable;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Lays out a safetensors file as the reference does: tensors by decreasing alignment of their type
 * and then by name, without holes; spaces after the header. The caller writes the data. For one
 * thread.
 */
public final class SafetensorsWriter {
  /** The least alignment of the data, as in the reference. */
  public static final int WORD = 8;

  private final Map<String, String> metadata = new TreeMap<>();
  private final Map<String, TensorInfo> tensors = new HashMap<>();

  /** A file without tensors. */
  public SafetensorsWriter() {}

  /**
   * A file's layout.
   *
   * @param head its first bytes, up to the data: length, header, spaces
   * @param tensors in the order of their offsets
   * @param fileBytes size of the file
   */
  public record Layout(byte[] head, List<TensorInfo> tensors, long fileBytes) {
    /** Copies the list, but not the bytes. */
    public Layout {
      tensors = List.copyOf(tensors);
    }
  }

  /** Adds text about the file. */
  public SafetensorsWriter metadata(String key, String value) {
    checkText(key);
    checkText(value);
    metadata.put(key, value);
    return this;
  }

  /**
   * Adds a tensor.
   *
   * @param shape the slowest varying dimension first
   * @throws InvalidRequestException if safetensors has no such type, the name is taken or not
   *     UTF-8, or the shape does not make a whole number of bytes
   */
  public SafetensorsWriter tensor(String name, ElementType type, long... shape) {
    checkText(name);
    if (!type.isSafetensors()) {
      throw new InvalidRequestException("safetensors has no " + type);
    }
    long bytes = type.bytes(TensorInfo.elements(shape));
    if (name.equals(Safetensors.METADATA)
        || shape.length > Safetensors.MOST_DIMENSIONS
        || tensors.putIfAbsent(name, new TensorInfo(name, type, shape, 0, bytes)) != null) {
      throw new InvalidRequestException(
          "'%s' exists already, is reserved, or has more than %d dimensions"
              .formatted(Printable.quote(name), Safetensors.MOST_DIMENSIONS));
    }
    return this;
  }

  /**
   * Lays out the added tensors.
   *
   * @param alignment the data starts at a multiple of this: {@link #WORD}, or a larger power of
   *     two, such as a page for reads past the page cache
   * @throws InvalidRequestException if the header becomes too long, or the file 2^63 bytes or more
   */
  public Layout layout(int alignment) {
    if (alignment < WORD || Integer.bitCount(alignment) != 1 || alignment > 1 << 24) {
      throw new InvalidRequestException(
          "an alignment of %d is not a power of two in %d..%d".formatted(alignment, WORD, 1 << 24));
    }
    List<TensorInfo> ordered = new ArrayList<>(tensors.values());
    ordered.sort(
        Comparator.comparing(TensorInfo::type)
            .reversed()
            .thenComparing(
                t -> t.name().getBytes(StandardCharsets.UTF_8), Arrays::compareUnsigned));
    byte[] json = json(ordered).getBytes(StandardCharsets.UTF_8);
    long start = Math.ceilDiv(Long.BYTES + (long) json.length, alignment) * (long) alignment;
    if (start - Long.BYTES > Safetensors.LONGEST_HEADER) {
      throw new InvalidRequestException(
          "a header of %d bytes is more than %d"
              .formatted(start - Long.BYTES, Safetensors.LONGEST_HEADER));
    }
    ByteBuffer head = ByteBuffer.allocate((int) start).order(ByteOrder.LITTLE_ENDIAN);
    head.putLong(start - Long.BYTES).put(json);
    while (head.hasRemaining()) {
      head.put((byte) ' ');
    }
    List<TensorInfo> placed = new ArrayList<>();
    long at = start;
    for (TensorInfo t : ordered) {
      placed.add(new TensorInfo(t.name(), t.type(), t.shape(), at, t.bytes()));
      at += t.bytes();
    }
    return new Layout(head.array(), placed, at);
  }

  private String json(List<TensorInfo> ordered) {
    StringWriter text = new StringWriter();
    try (JsonWriter json = new JsonWriter(text)) {
      json.beginObject();
      if (!metadata.isEmpty()) {
        json.name(Safetensors.METADATA).beginObject();
        for (Map.Entry<String, String> entry : metadata.entrySet()) {
          json.name(entry.getKey()).value(entry.getValue());
        }
        json.endObject();
      }
      long begin = 0;
      for (TensorInfo tensor : ordered) {
        if (begin > Long.MAX_VALUE - Safetensors.LONGEST_HEADER - 16 - tensor.bytes()) {
          throw new InvalidRequestException("the file would have 2^63 bytes or more");
        }
        json.name(tensor.name()).beginObject();
        json.name("dtype").value(tensor.type().name()).name("shape").beginArray();
        for (long dimension : tensor.shape()) {
          json.value(dimension);
        }
        json.endArray().name("data_offsets").beginArray();
        json.value(begin).value(begin + tensor.bytes());
        json.endArray().endObject();
        begin += tensor.bytes();
      }
      json.endObject();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return text.toString();
  }

  private static void checkText(String text) {
    try {
      StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
    } catch (CharacterCodingException e) {
      throw new InvalidRequestException(
          "'" + Printable.quote(text) + "' cannot be written as UTF-8");
    }
  }
}
