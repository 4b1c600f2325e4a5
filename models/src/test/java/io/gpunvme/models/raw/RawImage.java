package io.gpunvme.models.raw;

import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.MetaValue;
import io.gpunvme.models.format.TensorInfo;
import io.gpunvme.models.format.ValueType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import java.util.zip.CRC32C;

/** A raw model in memory, and what is wrong with it afterwards. */
final class RawImage {
  static final UUID ID = new UUID(0x0123456789ABCDEFL, 0x8123456789ABCDEFL);
  static final Instant WHEN = Instant.parse("2026-11-22T08:00:00.123Z");

  static final Stripe STRIPE = new Stripe(3, 65_536);

  final byte[] bytes;
  final RawLayout layout;

  private RawImage(RawLayout layout, byte[] bytes) {
    this.layout = layout;
    this.bytes = bytes;
  }

  /** Tensors of many shapes and odd lengths. */
  static List<TensorInfo> tensors(Random random, int count) {
    ElementType[] types = {
      ElementType.F32, ElementType.BF16, ElementType.U8, ElementType.Q4_0, ElementType.F64
    };
    List<TensorInfo> all = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      ElementType type = types[random.nextInt(types.length)];
      long last = type.blockElements() * (long) random.nextInt(20);
      long[] shape = new long[random.nextInt(1, 4)];
      shape[shape.length - 1] = last;
      long elements = last;
      for (int d = 0; d < shape.length - 1; d++) {
        shape[d] = random.nextInt(1, 5);
        elements *= shape[d];
      }
      all.add(new TensorInfo("layers." + i + ".w", type, shape, 0, type.bytes(elements)));
    }
    all.add(new TensorInfo("scalar \"ä\" \\", ElementType.F64, new long[0], 0, 8));
    return all;
  }

  static Map<String, MetaValue> metadata() {
    Map<String, MetaValue> all = new LinkedHashMap<>();
    all.put("general.name", new MetaValue.Text("a \u2028 \"name\"\n"));
    all.put("u64", new MetaValue.Whole(ValueType.U64, -1));
    all.put("i8", new MetaValue.Whole(ValueType.I8, -128));
    all.put("f32", new MetaValue.Real(ValueType.F32, 0.1f));
    all.put("nan", new MetaValue.Real(ValueType.F64, Double.NaN));
    all.put("flag", new MetaValue.Flag(true));
    return all;
  }

  static RawImage of(Random random, long alignment, int spare) {
    RawLayout layout =
        RawLayout.of(alignment, "a model", "safetensors", metadata(), tensors(random, 12));
    byte[] bytes = new byte[(int) layout.totalBytes() + spare];
    random.nextBytes(bytes);
    Map<String, Integer> sums = new HashMap<>();
    for (TensorInfo t : layout.tensors()) {
      sums.put(t.name(), crc(bytes, t.offset(), t.bytes()));
    }
    RawImage image = new RawImage(layout, bytes);
    image.put(layout.index(sums));
    return image;
  }

  /** Another index, with a superblock that fits it. */
  void put(byte[] index) {
    System.arraycopy(index, 0, bytes, (int) layout.indexOffset(), index.length);
    byte[] block = layout.superblock(index, ID, WHEN, STRIPE).encode();
    System.arraycopy(block, 0, bytes, 0, block.length);
  }

  /** Makes the index longer or shorter, whatever the layout says. */
  void replaceIndex(String json) {
    byte[] index = json.getBytes(StandardCharsets.UTF_8);
    System.arraycopy(index, 0, bytes, (int) layout.indexOffset(), index.length);
    ByteBuffer words = words();
    words.putLong(Superblock.INDEX_BYTES_AT, index.length);
    words.putLong(Superblock.TOTAL_AT, layout.indexOffset() + index.length);
    words.putInt(Superblock.INDEX_CRC_AT, crc(index, 0, index.length));
    seal();
  }

  String index() {
    ByteBuffer words = words();
    return new String(
        bytes,
        (int) words.getLong(Superblock.INDEX_AT),
        (int) words.getLong(Superblock.INDEX_BYTES_AT),
        StandardCharsets.UTF_8);
  }

  ByteBuffer words() {
    return ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Gives the superblock the checksum that it should have. */
  void seal() {
    words().putInt(Superblock.CRC_AT, crc(bytes, 0, Superblock.CRC_AT));
  }

  RawModel read() {
    return RawModel.read(new MemoryDevice(bytes), STRIPE);
  }

  static int crc(byte[] bytes, long offset, long length) {
    CRC32C crc = new CRC32C();
    crc.update(bytes, (int) offset, (int) length);
    return (int) crc.getValue();
  }
}
