package io.gpunvme.nvme.spec;

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
    return (word >>> shift) & ones();
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
    if ((value & ~ones()) != 0) {
      throw new IllegalArgumentException(
          name + " has " + width + " bits: " + value + " does not fit");
    }
    return (word & ~(ones() << shift)) | (value << shift);
  }

  /** {@link #with(long, long)} for a 32-bit word. */
  public int with(int word, long value) {
    return (int) with((long) word, value);
  }

  /** {@link #with(long, long)} for a one-bit field of a 32-bit word. */
  public int with(int word, boolean value) {
    return with(word, value ? 1L : 0L);
  }

  /** Returns the word in which only the bits of this field are set. */
  public int mask() {
    return (int) (ones() << shift);
  }

  private long ones() {
    return (1L << width) - 1;
  }
}
