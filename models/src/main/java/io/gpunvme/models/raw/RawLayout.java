package io.gpunvme.models.raw;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.models.format.MetaValue;
import io.gpunvme.models.format.TensorInfo;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * Where everything of a raw model will be, decided before anything is written: the tensors one
 * behind the other, each aligned, and the index behind them. Immutable.
 */
public final class RawLayout {
  private static final long INDEX_ALIGNMENT = 4096;

  private final long alignment;
  private final String name;
  private final String format;
  private final Map<String, MetaValue> metadata;
  private final List<TensorInfo> tensors;
  private final long indexOffset;
  private final int indexBytes;

  private RawLayout(
      long alignment,
      String name,
      String format,
      Map<String, MetaValue> metadata,
      List<TensorInfo> tensors,
      long indexOffset) {
    this.alignment = alignment;
    this.name = name;
    this.format = format;
    this.metadata = metadata;
    this.tensors = tensors;
    this.indexOffset = indexOffset;
    // Checksums have the same length, whatever they are.
    indexBytes = index(Map.of()).length;
  }

  /**
   * Lays tensors out.
   *
   * @param alignment of each tensor, a power of two from 512 bytes to 1 MiB
   * @param name of the model, up to 255 bytes of UTF-8
   * @param format what it is now, e.g. {@code safetensors}
   * @param tensors in the order in which they are to lie; their offsets do not matter
   * @throws InvalidRequestException if a name or number is out of its range, or the index would be
   *     longer than {@link Superblock#LONGEST_INDEX}
   */
  public static RawLayout of(
      long alignment,
      String name,
      String format,
      Map<String, MetaValue> metadata,
      List<TensorInfo> tensors) {
    if (!Superblock.isAlignment(alignment)) {
      throw new InvalidRequestException(
          "an alignment of %d bytes is not a power of two from %d bytes to %d"
              .formatted(alignment, Superblock.LEAST_ALIGNMENT, Superblock.MOST_ALIGNMENT));
    }
    if (Superblock.utf8(name).length > Superblock.LONGEST_NAME) {
      throw new InvalidRequestException(
          "the name '%s' has more than %d bytes".formatted(name, Superblock.LONGEST_NAME));
    }
    metadata.keySet().forEach(RawLayout::requireUnicode);
    List<TensorInfo> placed = new ArrayList<>();
    long at = up(Superblock.BYTES, alignment);
    for (TensorInfo t : tensors) {
      requireUnicode(t.name());
      placed.add(new TensorInfo(t.name(), t.type(), t.shape(), at, t.bytes()));
      at = up(at + t.bytes(), alignment);
    }
    RawLayout layout =
        new RawLayout(
            alignment,
            name,
            format,
            Collections.unmodifiableMap(new LinkedHashMap<>(metadata)),
            List.copyOf(placed),
            up(at, INDEX_ALIGNMENT));
    if (layout.indexBytes > Superblock.LONGEST_INDEX) {
      throw new InvalidRequestException(
          "the index of %d tensors and %d keys would have %d bytes, more than %d"
              .formatted(
                  placed.size(), metadata.size(), layout.indexBytes, Superblock.LONGEST_INDEX));
    }
    return layout;
  }

  /** Half a surrogate pair, which JSON can escape, is lost in UTF-8: two names may become one. */
  private static void requireUnicode(String name) {
    if (!new String(Superblock.utf8(name), StandardCharsets.UTF_8).equals(name)) {
      throw new InvalidRequestException("the name '" + name + "' cannot be written as UTF-8");
    }
  }

  /** {@code at} is less than 2^63: offsets of tensors are checked where they are made. */
  private static long up(long at, long alignment) {
    if (at < 0 || at > Long.MAX_VALUE - alignment) {
      throw new InvalidRequestException("tensors of 2^63 bytes or more");
    }
    return (at + alignment - 1) & -alignment;
  }

  /** The tensors with the offsets that they get, in this order. */
  public List<TensorInfo> tensors() {
    return tensors;
  }

  /** Where the index goes. */
  public long indexOffset() {
    return indexOffset;
  }

  /** Bytes from the superblock's first to the index's last one: what the device must have. */
  public long totalBytes() {
    return Math.addExact(indexOffset, indexBytes);
  }

  /**
   * The index.
   *
   * @param checksums CRC-32C of each tensor by name; 0 for those that are not in it
   */
  public byte[] index(Map<String, Integer> checksums) {
    List<RawTensor> all = new ArrayList<>();
    for (TensorInfo t : tensors) {
      all.add(new RawTensor(t, checksums.getOrDefault(t.name(), 0)));
    }
    return RawModel.index(format, metadata, all);
  }

  /**
   * The superblock that belongs to an index of this layout.
   *
   * @param stripe what it is written to
   */
  public Superblock superblock(byte[] index, UUID uuid, Instant created, Stripe stripe) {
    return new Superblock(
        totalBytes(),
        indexOffset,
        index.length,
        Superblock.crc32c(index, index.length),
        up(Superblock.BYTES, alignment),
        alignment,
        uuid,
        created,
        name,
        stripe);
  }
}
