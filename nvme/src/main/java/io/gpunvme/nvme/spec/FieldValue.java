package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import java.util.HexFormat;

/**
 * One field as people read it.
 *
 * @param name the specification's abbreviation, for example {@code MDTS}
 * @param value a {@link Long}, a {@link BigInteger} (numbers of more than 63 bits) or a {@link
 *     String}
 * @param text the value for people: flags in hexadecimal, numbers in decimal
 * @param meaning one line on what the field says
 */
public record FieldValue(String name, Object value, String text, String meaning) {
  /** Reads a field of the structure that starts at offset 0 of {@code s}. */
  static FieldValue of(Field field, MemorySegment s) {
    Object value =
        switch (field.kind()) {
          case NUMBER, FLAGS -> compact(field.big(s));
          case TEXT, ZERO_PADDED_TEXT -> field.text(s);
          case BYTES -> HexFormat.of().formatHex(field.bytes(s));
        };
    String text =
        field.kind() == Field.Kind.FLAGS
            ? "0x" + HexFormat.of().toHexDigits(field.number(s, Long.BYTES), 2 * field.length())
            : value.toString();
    return new FieldValue(field.name(), value, text, field.meaning());
  }

  /** Reads a field of a register or dword. */
  static FieldValue of(BitField field, long word) {
    long value = field.get(word);
    return new FieldValue(field.name(), value, Long.toString(value), field.meaning());
  }

  private static Number compact(BigInteger value) {
    return value.bitLength() < Long.SIZE ? (Number) value.longValue() : value;
  }
}
