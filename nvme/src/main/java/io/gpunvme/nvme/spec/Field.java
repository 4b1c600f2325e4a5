package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.math.BigInteger;
import java.util.HexFormat;

/**
 * One field of a data structure: where it lies and how it reads. Numbers are little endian and
 * unsigned.
 *
 * @param name the specification's abbreviation, for example {@code MDTS}
 * @param offset first byte
 * @param length bytes, 1..256
 * @param kind how the bytes read
 * @param meaning one line on what the field says
 */
public record Field(String name, int offset, int length, Kind kind, String meaning) {
  /** How the bytes of a field read. */
  public enum Kind {
    /** An unsigned number, shown in decimal. */
    NUMBER,
    /** Bits with meanings of their own, at most 8 bytes, shown in hexadecimal. */
    FLAGS,
    /** ASCII padded with spaces, or ended by a zero byte. */
    TEXT,
    /** An identifier, shown byte by byte in hexadecimal. */
    BYTES
  }

  private static final int PRINTABLE_FIRST = 0x20;
  private static final int PRINTABLE_LAST = 0x7E;

  /** Decodes the field out of a structure that starts at offset 0 of {@code s}. */
  public FieldValue decode(MemorySegment s) {
    Object value =
        switch (kind) {
          case NUMBER, FLAGS -> compact(big(s));
          case TEXT -> text(s);
          case BYTES -> HexFormat.of().formatHex(bytes(s));
        };
    String text =
        kind == Kind.FLAGS
            ? "0x" + HexFormat.of().toHexDigits(number(s), 2 * length)
            : value.toString();
    return new FieldValue(name, value, text, meaning);
  }

  private static Number compact(BigInteger value) {
    return value.bitLength() < Long.SIZE ? (Number) value.longValue() : value;
  }

  /** The low 64 bits of the number. */
  long number(MemorySegment s) {
    long value = 0;
    for (int i = Math.min(length, Long.BYTES) - 1; i >= 0; i--) {
      value = (value << Byte.SIZE) | Wire.u8(s, offset + i);
    }
    return value;
  }

  /** Writes the low 64 bits of the number; higher bytes stay as they are. */
  void number(MemorySegment s, long value) {
    if (length < Long.BYTES && value >>> (length * Byte.SIZE) != 0) {
      throw new IllegalArgumentException(
          "%s has %d bytes: %d does not fit".formatted(name, length, value));
    }
    for (int i = 0; i < Math.min(length, Long.BYTES); i++) {
      Wire.u8(s, offset + i, (int) (value >>> (i * Byte.SIZE)));
    }
  }

  BigInteger big(MemorySegment s) {
    return new BigInteger(1, reversed(bytes(s)));
  }

  void big(MemorySegment s, BigInteger value) {
    if (value.signum() < 0 || value.bitLength() > length * Byte.SIZE) {
      throw new IllegalArgumentException(
          "%s has %d bytes: %s does not fit".formatted(name, length, value));
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

  /**
   * The text up to the first zero byte without the padding; what is not printable ASCII reads as
   * {@code ?}, for a device must not reach the user's terminal with control codes.
   */
  String text(MemorySegment s) {
    StringBuilder text = new StringBuilder(length);
    for (byte b : bytes(s)) {
      if (b == 0) {
        break;
      }
      text.append(b >= PRINTABLE_FIRST && b <= PRINTABLE_LAST ? (char) b : '?');
    }
    return text.toString().strip();
  }

  /** Writes ASCII, padded with {@code pad}. */
  void text(MemorySegment s, String value, char pad) {
    if (value.length() > length) {
      throw new IllegalArgumentException(
          "%s has %d bytes: \"%s\" does not fit".formatted(name, length, value));
    }
    if (!value.chars().allMatch(c -> c >= PRINTABLE_FIRST && c <= PRINTABLE_LAST)) {
      throw new IllegalArgumentException(name + " must be printable ASCII");
    }
    for (int i = 0; i < length; i++) {
      Wire.u8(s, offset + i, i < value.length() ? value.charAt(i) : pad);
    }
  }

  private static byte[] reversed(byte[] bytes) {
    byte[] result = new byte[bytes.length];
    for (int i = 0; i < bytes.length; i++) {
      result[i] = bytes[bytes.length - 1 - i];
    }
    return result;
  }
}
