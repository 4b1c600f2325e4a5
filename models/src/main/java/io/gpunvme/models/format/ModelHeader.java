package io.gpunvme.models.format;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;

/**
 * The header of a file of weights.
 *
 * @param format with its version where it has one: {@code safetensors}, {@code GGUF v3}
 * @param file its name in messages
 * @param fileBytes size of the file
 * @param dataOffset where data begins
 * @param alignment the data of every tensor starts at a multiple of this, from {@code dataOffset};
 *     1 in safetensors
 * @param tensors in the order of their offsets, those without bytes first; names are unique, data
 *     does not overlap and lies in the file
 * @param metadata by key, in the file's order
 */
public record ModelHeader(
    String format,
    String file,
    long fileBytes,
    long dataOffset,
    long alignment,
    List<TensorInfo> tensors,
    Map<String, MetaValue> metadata) {
  /** Copies the collections. */
  public ModelHeader {
    tensors = List.copyOf(tensors);
    metadata = Collections.unmodifiableMap(new LinkedHashMap<>(metadata));
  }

  /** Bytes of all tensors, without padding. */
  public long tensorBytes() {
    return tensors.stream().mapToLong(TensorInfo::bytes).sum();
  }

  /** The value of a key, if it is text. */
  public Optional<String> text(String key) {
    return metadata.get(key) instanceof MetaValue.Text(String value)
        ? Optional.of(value)
        : Optional.empty();
  }

  /** The value of a key, if it is a whole number of any width. */
  public OptionalLong whole(String key) {
    return metadata.get(key) instanceof MetaValue.Whole whole && !whole.isHuge()
        ? OptionalLong.of(whole.value())
        : OptionalLong.empty();
  }
}
