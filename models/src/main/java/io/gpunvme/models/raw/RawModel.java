package io.gpunvme.models.raw;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.models.format.FormatException.Kind;
import io.gpunvme.models.format.HeapRoom;
import io.gpunvme.models.format.MetaValue;
import io.gpunvme.models.format.Safetensors;
import io.gpunvme.models.format.StrictJson;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.storage.fs.BlockReader;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * What a raw model's superblock and index say. Immutable.
 *
 * @param superblock the first 4096 bytes
 * @param format what it was before, e.g. {@code safetensors, 4 files}
 * @param metadata what the model says of itself
 * @param tensors in the order in which they lie there
 */
public record RawModel(
    Superblock superblock,
    String format,
    Map<String, MetaValue> metadata,
    List<RawTensor> tensors) {
  private static final String FORMAT = "format";
  private static final String METADATA = "metadata";
  private static final String TENSORS = "tensors";
  private static final String NAME = "name";
  private static final String TYPE = "type";
  private static final String SHAPE = "shape";
  private static final String OFFSET = "offset";
  private static final String BYTES = "bytes";
  private static final String CRC = "crc32c";
  private static final int CRC_DIGITS = 8;

  /** Copies. */
  public RawModel {
    metadata = Collections.unmodifiableMap(new LinkedHashMap<>(metadata));
    tensors = List.copyOf(tensors);
  }

  /** The index as it is written. */
  static byte[] index(String format, Map<String, MetaValue> metadata, List<RawTensor> tensors) {
    JsonObject json = new JsonObject();
    json.addProperty(FORMAT, format);
    JsonObject meta = new JsonObject();
    metadata.forEach((key, value) -> meta.add(key, MetaJson.write(value)));
    json.add(METADATA, meta);
    JsonArray list = new JsonArray();
    for (RawTensor t : tensors) {
      JsonObject one = new JsonObject();
      one.addProperty(NAME, t.info().name());
      one.addProperty(TYPE, t.info().type().name());
      JsonArray shape = new JsonArray();
      Arrays.stream(t.info().shape()).forEach(shape::add);
      one.add(SHAPE, shape);
      one.addProperty(OFFSET, t.info().offset());
      one.addProperty(BYTES, t.info().bytes());
      one.addProperty(CRC, HexFormat.of().toHexDigits(t.crc32c()));
      list.add(one);
    }
    json.add(TENSORS, list);
    return Superblock.utf8(json.toString());
  }

  /**
   * Reads what a device begins with. Its tensors lie in the device, aligned and apart from each
   * other; what they hold is not looked at.
   *
   * @param there what the device is: it must be what the model was written to
   * @throws FormatException if there is no raw model that can be used
   * @throws io.gpunvme.storage.path.StorageException if reading fails
   */
  public static RawModel read(BlockReader device, Stripe there) {
    return read(device, there, HeapRoom.here(device.name()));
  }

  static RawModel read(BlockReader device, Stripe there, HeapRoom room) {
    Superblock superblock = Superblock.read(device, there);
    room.take(superblock.indexBytes());
    // Within the device, and no longer than the limit: the superblock has been checked.
    byte[] bytes = new byte[(int) superblock.indexBytes()];
    device.read(superblock.indexOffset(), MemorySegment.ofArray(bytes));
    if (Superblock.crc32c(bytes, bytes.length) != superblock.indexCrc32c()) {
      throw FormatException.at(
          Kind.CORRUPT,
          device.name(),
          superblock.indexOffset(),
          "the index's checksum is wrong; write the model again");
    }
    return new Index(device.name(), superblock, bytes).read();
  }

  /** The index, being read. */
  private static final class Index {
    private final String where;
    private final Superblock superblock;
    private final StrictJson json;
    private final Map<String, MetaValue> metadata = new LinkedHashMap<>();
    private final List<RawTensor> tensors = new ArrayList<>();
    private final Set<String> names = new HashSet<>();
    private String format = "";
    private long end;
    private boolean complete;

    Index(String where, Superblock superblock, byte[] bytes) {
      this.where = where;
      this.superblock = superblock;
      json = new StrictJson(where, new ByteArrayInputStream(bytes));
      end = superblock.dataOffset();
    }

    RawModel read() {
      json.document(() -> json.object(this::member));
      if (!complete) {
        throw json.corrupt("the index has no tensors");
      }
      return new RawModel(superblock, format, metadata, tensors);
    }

    private void member(String key) throws IOException {
      switch (key) {
        case FORMAT -> format = json.text();
        case METADATA -> json.object(name -> metadata.put(name, MetaJson.read(json)));
        case TENSORS -> {
          json.array(() -> tensors.add(checked(new Entry().read())));
          complete = true;
        }
        default -> json.skip();
      }
    }

    private RawTensor checked(RawTensor tensor) {
      TensorInfo info = tensor.info();
      if (!names.add(info.name())) {
        throw bad(info.name(), "it is there twice");
      }
      if (info.offset() % superblock.alignment() != 0) {
        throw bad(
            info.name(),
            "its offset %d is not a multiple of %d"
                .formatted(info.offset(), superblock.alignment()));
      }
      if (info.offset() < end || info.end() > superblock.indexOffset()) {
        throw bad(
            info.name(),
            "its %d bytes at %d are not between %d, the end of the tensor before, and %d, the start of the index"
                .formatted(info.bytes(), info.offset(), end, superblock.indexOffset()));
      }
      end = info.end();
      return tensor;
    }

    private FormatException bad(String tensor, String what) {
      return FormatException.tensor(Kind.CORRUPT, where, tensor, what);
    }

    /** What the index says of one tensor. */
    private final class Entry {
      private String name = "";
      private boolean named;
      private String type = "";
      private long[] shape = {};
      private int rank = -1;
      private long offset = -1;
      private long bytes = -1;
      private String crc = "";

      RawTensor read() throws IOException {
        json.object(this::member);
        if (!named || rank < 0 || offset < 0 || bytes < 0) {
          throw bad(name, "it needs name, type, shape, offset and bytes");
        }
        if (crc.length() != CRC_DIGITS || !crc.chars().allMatch(HexFormat::isHexDigit)) {
          throw bad(name, "its crc32c is not 8 hexadecimal digits");
        }
        try {
          TensorInfo info =
              new TensorInfo(name, elementType(), Arrays.copyOf(shape, rank), offset, bytes);
          return new RawTensor(info, HexFormat.fromHexDigits(crc));
        } catch (InvalidRequestException e) {
          throw bad(name, String.valueOf(e.getMessage()));
        }
      }

      private void member(String key) throws IOException {
        switch (key) {
          case NAME -> {
            name = json.text();
            named = true;
          }
          case TYPE -> type = json.text();
          case SHAPE -> {
            rank = 0;
            json.array(this::dimension);
          }
          case OFFSET -> offset = json.whole();
          case BYTES -> bytes = json.whole();
          case CRC -> crc = json.text();
          default -> json.skip();
        }
      }

      private void dimension() throws IOException {
        if (rank == Safetensors.MOST_DIMENSIONS) {
          throw bad(name, "it has more than " + Safetensors.MOST_DIMENSIONS + " dimensions");
        }
        if (rank == shape.length) {
          shape = Arrays.copyOf(shape, 2 * rank + 1);
        }
        shape[rank++] = json.whole();
      }

      private ElementType elementType() {
        for (ElementType one : ElementType.values()) {
          if (one.name().equals(type)) {
            return one;
          }
        }
        throw FormatException.tensor(Kind.UNSUPPORTED, where, name, "its type is unknown");
      }
    }
  }
}
