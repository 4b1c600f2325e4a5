package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.math.BigInteger;

/**
 * One field of a data structure: where it lies and what it holds. Numbers are little endian and
 * unsigned.
 *
 * @param name the specification's abbreviation, for example {@code MDTS}
 * @param offset first byte
 * @param length bytes, 1..256
 * @param kind what the bytes are
 * @param meaning one line on what the field says
 */
public record Field(String name, int offset, int length, Kind kind, String meaning) {
  /** What the bytes of a field are. */
  public enum Kind {
    /** An unsigned number, shown in decimal. */
    NUMBER,
    /** Bits with meanings of their own, at most 8 bytes, shown in hexadecimal. */
    FLAGS,
    /** ASCII padded with spaces. */
    TEXT,
    /** ASCII padded with zero bytes. */
    ZERO_PADDED_TEXT,
    /** An identifier, shown byte by byte in hexadecimal. */
    BYTES
  }

  private static final int PRINTABLE_FIRST = 0x20;
  private static final int PRINTABLE_LAST = 0x7E;

  /** Whether the bytes are a number. */
  boolean isNumber() {
    return kind == Kind.NUMBER || kind == Kind.FLAGS;
  }

  /** Whether the bytes are text. */
  boolean isText() {
    return kind == Kind.TEXT || kind == Kind.ZERO_PADDED_TEXT;
  }

  /** The low 64 bits of the number, which has at most {@code most} bytes. */
  long number(MemorySegment s, int most) {
    require(isNumber(), "a number");
    if (length > most) {
      throw new IllegalArgumentException(
          "%s has %d bytes: they do not fit %d".formatted(name, length, most));
    }
    long value = 0;
    for (int i = Math.min(length, Long.BYTES) - 1; i >= 0; i--) {
      value = (value << Byte.SIZE) | Wire.u8(s, offset + i);
    }
    return value;
  }

  /** Writes the low 64 bits of the number; higher bytes stay as they are. */
  void number(MemorySegment s, long value) {
    require(isNumber(), "a number");
    if (length < Long.BYTES && value >>> (length * Byte.SIZE) != 0) {
      throw doesNotFit(value);
    }
    for (int i = 0; i < Math.min(length, Long.BYTES); i++) {
      Wire.u8(s, offset + i, (int) (value >>> (i * Byte.SIZE)));
    }
  }

  BigInteger big(MemorySegment s) {
    require(isNumber(), "a number");
    return new BigInteger(1, reversed(bytes(s)));
  }

  void big(MemorySegment s, BigInteger value) {
    require(isNumber(), "a number");
    if (value.signum() < 0 || value.bitLength() > length * Byte.SIZE) {
      throw doesNotFit(value);
    }
    for (int i = 0; i < length; i++) {
      Wire.u8(s, offset + i, value.shiftRight(i * Byte.SIZE).intValue());
    }
  }

  byte[] bytes(MemorySegment s) {
    return s.asSlice(offset, length).toArray(ValueLayout.JAVA_BYTE);
  }

  void bytes(MemorySegment s, byte[] value) {
    if (value.length != length) {
      throw new IllegalArgumentException(
          "%s has %d bytes, not %d".formatted(name, length, value.length));
    }
    s.asSlice(offset, length).copyFrom(MemorySegment.ofArray(value));
  }

  String text(MemorySegment s) {
    require(isText(), "text");
    StringBuilder text = new StringBuilder(length);
    for (byte b : bytes(s)) {
      if (b == 0) {
        break;
      }
      text.append(b >= PRINTABLE_FIRST && b <= PRINTABLE_LAST ? (char) b : '?');
    }
    return text.toString().strip();
  }

  void text(MemorySegment s, String value) {
    require(isText(), "text");
    if (value.length() > length) {
      throw doesNotFit('"' + value + '"');
    }
    if (!value.chars().allMatch(c -> c >= PRINTABLE_FIRST && c <= PRINTABLE_LAST)) {
      throw new IllegalArgumentException(name + " must be printable ASCII");
    }
    char pad = kind == Kind.TEXT ? ' ' : '\0';
    for (int i = 0; i < length; i++) {
      Wire.u8(s, offset + i, i < value.length() ? value.charAt(i) : pad);
    }
  }

  private void require(boolean right, String what) {
    if (!right) {
      throw new IllegalArgumentException(
          "%s has %d bytes of kind %s: it is not %s".formatted(name, length, kind, what));
    }
  }

  private IllegalArgumentException doesNotFit(Object value) {
    return new IllegalArgumentException(
        "%s has %d bytes: %s does not fit".formatted(name, length, value));
  }

  private static byte[] reversed(byte[] bytes) {
    byte[] result = new byte[bytes.length];
    for (int i = 0; i < bytes.length; i++) {
      result[i] = bytes[bytes.length - 1 - i];
    }
    return result;
  }
}
