package io.gpunvme.storage.fs.ext4;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Objects;
import java.util.zip.Checksum;

/** Little-endian numbers in a part of an array that nobody changes any more. */
final class Bytes {
  private static final VarHandle SHORT =
      MethodHandles.byteArrayViewVarHandle(short[].class, ByteOrder.LITTLE_ENDIAN)
          .withInvokeExactBehavior();
  private static final VarHandle INT =
      MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN)
          .withInvokeExactBehavior();

  private final byte[] array;
  private final int start;
  private final int length;

  Bytes(byte[] array) {
    this(array, 0, array.length);
  }

  private Bytes(byte[] array, int start, int length) {
    this.array = array;
    this.start = start;
    this.length = length;
  }

  int length() {
    return length;
  }

  Bytes slice(int from, int count) {
    return new Bytes(array, at(from, count), count);
  }

  int u8(int offset) {
    return array[at(offset, 1)] & 0xFF;
  }

  int u16(int offset) {
    return (short) SHORT.get(array, at(offset, 2)) & 0xFFFF;
  }

  int i32(int offset) {
    return (int) INT.get(array, at(offset, 4));
  }

  long u32(int offset) {
    return i32(offset) & 0xFFFF_FFFFL;
  }

  /** A number whose halves lie apart. */
  long u64(int low, int high) {
    return u32(low) | u32(high) << 32;
  }

  byte[] copy(int from, int count) {
    int first = at(from, count);
    return Arrays.copyOfRange(array, first, first + count);
  }

  boolean equalTo(int from, byte[] other) {
    int first = at(from, other.length);
    return Arrays.equals(array, first, first + other.length, other, 0, other.length);
  }

  /** Adds bytes to a checksum. */
  void update(Checksum sum, int from, int count) {
    sum.update(array, at(from, count), count);
  }

  /** Bytes up to the first zero. */
  byte[] text(int from, int most) {
    int n = 0;
    while (n < most && u8(from + n) != 0) {
      n++;
    }
    return copy(from, n);
  }

  private int at(int offset, int count) {
    return start + Objects.checkFromIndexSize(offset, count, length);
  }
}
