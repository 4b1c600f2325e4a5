package io.gpunvme.models.format;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Printable;
import io.gpunvme.models.format.FormatException.Kind;
import io.gpunvme.storage.fs.BlockReader;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * Reads the header of a GGUF file, versions 2 and 3, little endian: counts, metadata, and
 * descriptions of the tensors. Their data follows at the next multiple of the alignment, each
 * padded to it.
 *
 * <p>Source: {@code docs/gguf.md} of ggml, and what its {@code gguf.cpp} checks. Besides what that
 * refuses: more than {@value #MOST_TENSORS} tensors or {@value #MOST_KEYS} keys, and an alignment
 * below 8. Arrays of arrays are read, though that program does not; so are names of up to {@value
 * #LONGEST_NAME} bytes, since builds for image models have that limit where others have 63. The
 * last tensor's padding may be missing, and more may follow it.
 */
public final class Gguf {
  /** The start of {@link ModelHeader#format}. */
  public static final String FORMAT = "GGUF";

  /** Most tensors in a file. */
  public static final int MOST_TENSORS = 1 << 20;

  /** Most metadata keys in a file. */
  public static final int MOST_KEYS = 1 << 16;

  /** Longest name of a tensor, in bytes. */
  public static final int LONGEST_NAME = 127;

  /** {@code GGUF}, read little endian. */
  static final int MAGIC = 0x4655_4747;

  static final String ALIGNMENT = "general.alignment";

  private static final int LONGEST_KEY = 65_535;
  private static final int MOST_DIMENSIONS = 4;
  private static final int DEFAULT_ALIGNMENT = 32;
  private static final int SMALLEST_ALIGNMENT = 8;
  private static final int OLDEST = 2;
  private static final int NEWEST = 3;

  /** A file of this size could have no tensor and no key. */
  private static final int SMALLEST_FILE = 24;

  private static final int SMALLEST_KEY = 8 + 1 + 4 + 1;
  private static final int SMALLEST_TENSOR = 8 + 4 + 4 + 8;

  /** What a tensor and a key need without their names: as much as so many bytes of text. */
  private static final int TENSOR_ROOM = 64;

  private static final int KEY_ROOM = 32;

  /** Types that ggml once had, by their numbers. */
  private static final Map<Integer, String> REMOVED =
      Map.of(
          4,
          "Q4_2",
          5,
          "Q4_3",
          31,
          "Q4_0_4_4",
          32,
          "Q4_0_4_8",
          33,
          "Q4_0_8_8",
          36,
          "IQ4_NL_4_4",
          37,
          "IQ4_NL_4_8",
          38,
          "IQ4_NL_8_8");

  private final BlockReader reader;
  private final ByteCursor in;
  private final HeapRoom room;
  private final GgufValues values;
  private final Map<String, MetaValue> metadata = new LinkedHashMap<>();

  private Gguf(BlockReader reader, HeapRoom room) {
    this.reader = reader;
    this.in = new ByteCursor(reader, 0, reader.size());
    this.room = room;
    this.values = new GgufValues(reader, in, room);
  }

  /** A tensor as the file has it: its offset counts from where data begins. */
  private record Raw(String name, ElementType type, long[] shape, long bytes, long offset) {}

  /**
   * Reads the header of a file.
   *
   * @param reader must stay open while arrays of the metadata are read
   * @throws FormatException if it cannot be used
   * @throws io.gpunvme.storage.path.StorageException if reading fails
   */
  public static ModelHeader read(BlockReader reader) {
    return read(reader, HeapRoom.here(reader.name()));
  }

  static ModelHeader read(BlockReader reader, HeapRoom room) {
    return new Gguf(reader, room).read();
  }

  private ModelHeader read() {
    if (reader.size() < SMALLEST_FILE || in.u32("the magic") != MAGIC) {
      throw FormatException.at(
          Kind.NOT_THIS_FORMAT, reader.name(), 0, "not a GGUF file: it does not begin with 'GGUF'");
    }
    long version = version();
    int tensorCount = count("tensors", MOST_TENSORS, SMALLEST_TENSOR);
    int keyCount = count("metadata keys", MOST_KEYS, SMALLEST_KEY);
    // Names and text come on top of that, as they are read.
    room.take((long) tensorCount * TENSOR_ROOM + (long) keyCount * KEY_ROOM);
    readMetadata(keyCount);
    long alignment = alignment();
    List<Raw> raw = new ArrayList<>();
    Set<String> names = new HashSet<>();
    for (int i = 0; i < tensorCount; i++) {
      Raw tensor = readTensor();
      if (!names.add(tensor.name)) {
        throw bad(tensor.name, Kind.CORRUPT, "it is there twice");
      }
      raw.add(tensor);
    }
    // A file of metadata alone, the first of a split one, may end here.
    long padding = raw.isEmpty() ? 0 : -in.position() & alignment - 1;
    in.skip(padding, "the padding before the data");
    return new ModelHeader(
        FORMAT + " v" + version,
        reader.name(),
        reader.size(),
        in.position(),
        alignment,
        place(raw, in.position(), alignment),
        metadata);
  }

  private long version() {
    long at = in.position();
    long version = in.u32("the version");
    if (version >= OLDEST && version <= NEWEST) {
      return version;
    }
    String what =
        version != 0 && (version & 0xFFFF) == 0
            ? "it is big endian; convert it with gguf_convert_endian.py of llama.cpp"
            : "version %d, not %d or %d; convert the model with a current llama.cpp"
                .formatted(version, OLDEST, NEWEST);
    throw FormatException.at(Kind.UNSUPPORTED, reader.name(), at, what);
  }

  /** Checked against what the rest of the file could hold. */
  private int count(String what, int most, int smallest) {
    long at = in.position();
    long count = in.i64("the number of " + what);
    if (count < 0 || count > in.remaining() / smallest) {
      throw FormatException.at(
          Kind.CORRUPT,
          reader.name(),
          at,
          "%s %s do not fit into the file".formatted(Long.toUnsignedString(count), what));
    }
    if (count > most) {
      throw FormatException.at(
          Kind.UNSUPPORTED,
          reader.name(),
          at,
          "%d %s are more than %d".formatted(count, what, most));
    }
    return (int) count;
  }

  private void readMetadata(int keyCount) {
    for (int i = 0; i < keyCount; i++) {
      long at = in.position();
      String key = values.name(LONGEST_KEY, "a key");
      if (key.isEmpty()) {
        throw FormatException.at(Kind.CORRUPT, reader.name(), at, "an empty metadata key");
      }
      if (metadata.containsKey(key)) {
        throw FormatException.at(
            Kind.CORRUPT,
            reader.name(),
            at,
            "the metadata key '%s' is there twice".formatted(Printable.quote(key)));
      }
      metadata.put(key, values.value(key));
    }
  }

  /** ggml demands a power of two, the description a multiple of 8. */
  private long alignment() {
    MetaValue value = metadata.get(ALIGNMENT);
    if (value == null) {
      return DEFAULT_ALIGNMENT;
    }
    if (value instanceof MetaValue.Whole(ValueType type, long alignment)
        && type == ValueType.U32
        && alignment >= SMALLEST_ALIGNMENT
        && Long.bitCount(alignment) == 1) {
      return alignment;
    }
    throw FormatException.of(
        Kind.CORRUPT,
        reader.name(),
        "%s is not a power of two of at least %d as u32: %s %s"
            .formatted(
                ALIGNMENT, SMALLEST_ALIGNMENT, value.type(), Printable.quote(value.toString())));
  }

  private Raw readTensor() {
    String name = values.name(LONGEST_NAME, "a tensor's name");
    long rank = in.u32("the number of dimensions");
    if (rank > MOST_DIMENSIONS) {
      throw bad(
          name, Kind.CORRUPT, "%d dimensions are more than %d".formatted(rank, MOST_DIMENSIONS));
    }
    long[] shape = new long[(int) rank];
    for (int i = shape.length - 1; i >= 0; i--) {
      shape[i] = in.i64("a dimension");
    }
    ElementType type = type(name, in.u32("the type"));
    long offset = in.i64("the offset");
    long row = shape.length == 0 ? 1 : shape[shape.length - 1];
    if (row % type.blockElements() != 0) {
      throw bad(
          name,
          Kind.CORRUPT,
          "rows of %d elements are not whole blocks of %d, of which %s is"
              .formatted(row, type.blockElements(), type));
    }
    try {
      return new Raw(name, type, shape, type.bytes(TensorInfo.elements(shape)), offset);
    } catch (InvalidRequestException e) {
      throw bad(name, Kind.CORRUPT, String.valueOf(e.getMessage()));
    }
  }

  private ElementType type(String name, long id) {
    int known = (int) Math.min(id, Integer.MAX_VALUE);
    return ElementType.ofGguf(known)
        .orElseThrow(
            () ->
                bad(
                    name,
                    Kind.UNSUPPORTED,
                    REMOVED.containsKey(known)
                        ? "type %d (%s) was removed from ggml; convert the model again"
                            .formatted(id, REMOVED.get(known))
                        : "type %d is unknown".formatted(id)));
  }

  /** Offsets follow each other with padding, as ggml writes them and demands of others. */
  private List<TensorInfo> place(List<Raw> raw, long dataOffset, long alignment) {
    List<TensorInfo> tensors = new ArrayList<>();
    long next = 0;
    for (Raw tensor : raw) {
      if (tensor.offset != next) {
        throw bad(
            tensor.name,
            Kind.CORRUPT,
            "its data begins at %s, not at %d, after the tensor before it"
                .formatted(Long.toUnsignedString(tensor.offset), next));
      }
      if (tensor.bytes > reader.size() - dataOffset - next) {
        throw bad(
            tensor.name,
            Kind.TRUNCATED,
            "its %d bytes at %d go past the end, byte %d; copy or download the file again"
                .formatted(tensor.bytes, dataOffset + next, reader.size()));
      }
      tensors.add(
          new TensorInfo(tensor.name, tensor.type, tensor.shape, dataOffset + next, tensor.bytes));
      next += tensor.bytes;
      next += -next & alignment - 1;
    }
    return tensors;
  }

  private FormatException bad(String tensor, Kind kind, String what) {
    return FormatException.tensor(kind, reader.name(), tensor, what);
  }
}
