package io.gpunvme.models.format;

import io.gpunvme.storage.fs.BytesReader;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/**
 * Makes GGUF files from the format's description, number by number, so that any of them can be
 * wrong. It shares nothing with the reader.
 */
public final class GgufBytes {
  static final int U8 = 0;
  static final int I8 = 1;
  public static final int U16 = 2;
  static final int I16 = 3;
  static final int U32 = 4;
  public static final int I32 = 5;
  static final int F32 = 6;
  static final int BOOL = 7;
  public static final int STRING = 8;
  static final int ARRAY = 9;
  static final int U64 = 10;
  static final int I64 = 11;
  static final int F64 = 12;

  private final ByteArrayOutputStream out = new ByteArrayOutputStream();

  /** Magic, version 3 and counts. */
  public static GgufBytes start(long tensors, long keys) {
    return start(3, tensors, keys);
  }

  static GgufBytes start(int version, long tensors, long keys) {
    return new GgufBytes()
        .raw("GGUF".getBytes(StandardCharsets.US_ASCII))
        .i32(version)
        .i64(tensors)
        .i64(keys);
  }

  public GgufBytes raw(byte[] bytes) {
    out.writeBytes(bytes);
    return this;
  }

  GgufBytes u8(int value) {
    out.write(value);
    return this;
  }

  public GgufBytes i16(int value) {
    return raw(little(2).putShort((short) value).array());
  }

  public GgufBytes i32(long value) {
    return raw(little(4).putInt((int) value).array());
  }

  GgufBytes i64(long value) {
    return raw(little(8).putLong(value).array());
  }

  GgufBytes f32(float value) {
    return raw(little(4).putFloat(value).array());
  }

  GgufBytes f64(double value) {
    return raw(little(8).putDouble(value).array());
  }

  public GgufBytes text(String text) {
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    return i64(bytes.length).raw(bytes);
  }

  /** A key and its type; the value follows. */
  public GgufBytes key(String key, int type) {
    return text(key).i32(type);
  }

  /** A key and the head of an array; the items follow. */
  GgufBytes array(String key, int type, long count) {
    return key(key, ARRAY).i32(type).i64(count);
  }

  public GgufBytes u32(String key, long value) {
    return key(key, U32).i32(value);
  }

  /** Dimensions the fastest varying first. */
  public GgufBytes tensor(String name, int type, long offset, long... dimensions) {
    text(name).i32(dimensions.length);
    for (long dimension : dimensions) {
      i64(dimension);
    }
    return i32(type).i64(offset);
  }

  /** Tensors of one number each, with their data. */
  GgufBytes tensors(int count) {
    for (int i = 0; i < count; i++) {
      tensor("t" + i, 0, 32L * i, 1);
    }
    return pad(32).zeros(32 * count);
  }

  public GgufBytes pad(int alignment) {
    while (out.size() % alignment != 0) {
      out.write(0);
    }
    return this;
  }

  GgufBytes zeros(int count) {
    return raw(new byte[count]);
  }

  int size() {
    return out.size();
  }

  public byte[] bytes() {
    return out.toByteArray();
  }

  BytesReader reader() {
    return new BytesReader(bytes());
  }

  private static ByteBuffer little(int bytes) {
    return ByteBuffer.allocate(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }
}
