package io.gpunvme.models.format;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Printable;
import io.gpunvme.models.format.FormatException.Kind;
import io.gpunvme.storage.fs.BlockReader;
import java.io.IOException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads the header of a safetensors file: 8 bytes little endian with its length, JSON, and then the
 * data up to the file's end.
 *
 * <p>Source: the format's description in the README of safetensors, and what its {@code
 * Metadata::validate} checks. Stricter than that program: the header begins with <code>{</code> and
 * is followed by spaces only, no name appears twice (the description forbids it, the program takes
 * the last), {@code __metadata__} is an object, entries are objects, dimensions are below 2^63 and
 * at most {@value #MOST_DIMENSIONS}. Other keys of an entry are ignored, as in that program.
 */
public final class Safetensors {
  /** The value of {@link ModelHeader#format}. */
  public static final String FORMAT = "safetensors";

  /** Longest header in bytes. */
  public static final int LONGEST_HEADER = 100_000_000;

  /** The limit of NumPy and PyTorch. */
  public static final int MOST_DIMENSIONS = 64;

  static final String METADATA = "__metadata__";

  private static final int SHORTEST_HEADER = 2;
  private static final int TAIL = 4096;

  private final BlockReader reader;
  private final StrictJson json;
  private final long dataOffset;
  private final List<TensorInfo> tensors = new ArrayList<>();
  private final Map<String, MetaValue> metadata = new LinkedHashMap<>();

  private Safetensors(BlockReader reader, long headerBytes) {
    this.reader = reader;
    this.dataOffset = Long.BYTES + headerBytes;
    this.json =
        new StrictJson(reader.name(), new ByteCursor(reader, Long.BYTES, dataOffset).stream());
  }

  /**
   * Reads the header of a file.
   *
   * @throws FormatException if it is not one that could be used
   * @throws io.gpunvme.storage.path.StorageException if reading fails
   */
  public static ModelHeader read(BlockReader reader) {
    Safetensors file = new Safetensors(reader, headerBytes(reader));
    file.json.document(() -> file.json.object(file::member));
    return file.header();
  }

  private static long headerBytes(BlockReader reader) {
    if (reader.size() < Long.BYTES + SHORTEST_HEADER) {
      throw FormatException.of(
          Kind.NOT_THIS_FORMAT,
          reader.name(),
          "not a safetensors file: it has only %d bytes".formatted(reader.size()));
    }
    ByteCursor start = new ByteCursor(reader, 0, reader.size());
    long length = start.i64("the header's length");
    int first = start.u8("the header");
    if (length < SHORTEST_HEADER || length > LONGEST_HEADER) {
      throw FormatException.at(
          first == '{' ? Kind.CORRUPT : Kind.NOT_THIS_FORMAT,
          reader.name(),
          0,
          "not a safetensors file: its header would have %s bytes, which is outside %d..%d"
              .formatted(Long.toUnsignedString(length), SHORTEST_HEADER, LONGEST_HEADER));
    }
    if (first != '{') {
      throw FormatException.at(
          Kind.NOT_THIS_FORMAT,
          reader.name(),
          Long.BYTES,
          "not a safetensors file: its header does not begin with '{'");
    }
    if (length > reader.size() - Long.BYTES) {
      throw FormatException.at(
          Kind.TRUNCATED,
          reader.name(),
          reader.size(),
          "the header of %d bytes does not end here; copy or download the file again"
              .formatted(length));
    }
    HeapRoom.here(reader.name()).take(length);
    checkTail(reader, Long.BYTES + length);
    return length;
  }

  /** Behind the JSON there may be spaces. It begins with a brace, so the search ends. */
  private static void checkTail(BlockReader reader, long end) {
    long at = end;
    while (at > Long.BYTES) {
      long start = Math.max(Long.BYTES, at - TAIL);
      byte[] tail = new ByteCursor(reader, start, at).bytes((int) (at - start), "the header");
      for (int i = tail.length - 1; i >= 0; i--) {
        if (tail[i] == '}') {
          return;
        }
        if (tail[i] != ' ') {
          throw FormatException.at(
              Kind.CORRUPT,
              reader.name(),
              start + i,
              "the header does not end with '}' and optional spaces after it");
        }
      }
      at = start;
    }
  }

  private void member(String name) throws IOException {
    if (name.equals(METADATA)) {
      json.object(key -> metadata.put(key, new MetaValue.Text(json.text())));
    } else {
      tensors.add(new Entry(name).read());
    }
  }

  private ModelHeader header() {
    // Those without bytes come before the one that is at the same place.
    tensors.sort(
        Comparator.comparingLong(TensorInfo::offset)
            .thenComparingLong(TensorInfo::end)
            .thenComparing(TensorInfo::name));
    long at = dataOffset;
    for (TensorInfo tensor : tensors) {
      if (tensor.offset() != at) {
        throw FormatException.tensor(
            Kind.CORRUPT,
            reader.name(),
            tensor.name(),
            "its data begins at %d, but the data before it ends at %d: a hole, or an overlap"
                .formatted(tensor.offset() - dataOffset, at - dataOffset));
      }
      at = tensor.end();
    }
    if (at != reader.size()) {
      boolean cut = at > reader.size();
      throw FormatException.at(
          cut ? Kind.TRUNCATED : Kind.CORRUPT,
          reader.name(),
          reader.size(),
          "the file has %d bytes, but its header says %d%s"
              .formatted(reader.size(), at, cut ? "; copy or download the file again" : ""));
    }
    return new ModelHeader(FORMAT, reader.name(), reader.size(), dataOffset, 1, tensors, metadata);
  }

  /** What the header says of one tensor. */
  private final class Entry {
    private static final int OFFSETS = 2;

    private final String name;
    private String dtype = "";
    private long[] shape = new long[OFFSETS];
    private int rank = -1;
    private final long[] offsets = new long[OFFSETS];
    private int offsetCount = -1;

    Entry(String name) {
      this.name = name;
    }

    TensorInfo read() throws IOException {
      json.object(
          key -> {
            switch (key) {
              case "dtype" -> dtype = json.text();
              case "shape" -> readShape();
              case "data_offsets" -> readOffsets();
              default -> json.skip();
            }
          });
      if (dtype.isEmpty() || rank < 0 || offsetCount != OFFSETS) {
        throw bad(Kind.CORRUPT, "it needs dtype, shape, and data_offsets of two numbers");
      }
      return info();
    }

    private void readShape() throws IOException {
      rank = 0;
      json.array(
          () -> {
            if (rank == MOST_DIMENSIONS) {
              throw bad(Kind.UNSUPPORTED, "it has more than " + MOST_DIMENSIONS + " dimensions");
            }
            if (rank == shape.length) {
              shape = Arrays.copyOf(shape, 2 * rank);
            }
            shape[rank++] = json.whole();
          });
    }

    private void readOffsets() throws IOException {
      offsetCount = 0;
      json.array(
          () -> {
            if (offsetCount == OFFSETS) {
              throw bad(Kind.CORRUPT, "data_offsets must be two numbers, not more");
            }
            offsets[offsetCount++] = json.whole();
          });
    }

    private TensorInfo info() {
      ElementType type =
          ElementType.ofSafetensors(dtype)
              .orElseThrow(
                  () ->
                      bad(
                          Kind.UNSUPPORTED,
                          "the dtype '%s' is not one of safetensors"
                              .formatted(Printable.quote(dtype))));
      long begin = offsets[0];
      long end = offsets[1];
      if (begin > end || end > Long.MAX_VALUE - dataOffset) {
        throw bad(Kind.CORRUPT, "data_offsets %d..%d are not a range".formatted(begin, end));
      }
      try {
        return new TensorInfo(
            name, type, Arrays.copyOf(shape, rank), dataOffset + begin, end - begin);
      } catch (InvalidRequestException e) {
        throw bad(Kind.CORRUPT, String.valueOf(e.getMessage()));
      }
    }

    private FormatException bad(Kind kind, String what) {
      return FormatException.tensor(kind, reader.name(), name, what);
    }
  }
}
