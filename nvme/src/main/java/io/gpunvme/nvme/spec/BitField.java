package io.gpunvme.nvme.spec;

import java.util.Arrays;
import java.util.List;

/**
 * Bits {@code shift + width - 1 : shift} of a register or command dword.
 *
 * @param name the specification's abbreviation
 * @param shift lowest bit, 0..63
 * @param width number of bits, 1..63
 * @param meaning one line on what the field says
 */
public record BitField(String name, int shift, int width, String meaning) {
  /** Returns the field's value out of {@code word}. */
  public long get(long word) {
    return (word >>> shift) & mask();
  }

  /** Returns the field's value out of a 32-bit {@code word}. */
  public int get(int word) {
    return (int) get((long) word);
  }

  /** Returns whether any bit of the field is set in {@code word}. */
  public boolean isSet(long word) {
    return get(word) != 0;
  }

  /**
   * Returns {@code word} with this field replaced.
   *
   * @throws IllegalArgumentException if {@code value} does not fit the field
   */
  public long with(long word, long value) {
    if ((value & ~mask()) != 0) {
      throw new IllegalArgumentException(
          name + " has " + width + " bits: " + value + " does not fit");
    }
    return (word & ~(mask() << shift)) | (value << shift);
  }

  /** {@link #with(long, long)} for a 32-bit word. */
  public int with(int word, long value) {
    return (int) with((long) word, value);
  }

  /** {@link #with(long, long)} for a one-bit field. */
  public long with(long word, boolean value) {
    return with(word, value ? 1L : 0L);
  }

  /** {@link #with(int, long)} for a one-bit field. */
  public int with(int word, boolean value) {
    return with(word, value ? 1L : 0L);
  }

  private long mask() {
    return (1L << width) - 1;
  }

  FieldValue decode(long word) {
    long value = get(word);
    return new FieldValue(name, value, Long.toString(value), meaning);
  }

  static List<FieldValue> decodeAll(long word, BitField... fields) {
    return Arrays.stream(fields).map(field -> field.decode(word)).toList();
  }
}
