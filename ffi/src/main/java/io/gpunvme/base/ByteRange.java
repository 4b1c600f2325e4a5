package io.gpunvme.base;

/**
 * Bytes of something, as people write them: {@code 64MiB} for the first ones, {@code 1GiB+64MiB}.
 *
 * @param offset of the first byte, 0 or more
 * @param bytes how many, at least 1; the end is no more than 2^63 - 1
 */
public record ByteRange(long offset, long bytes) {
  /**
   * Checks.
   *
   * @throws InvalidRequestException if there is no such range
   */
  public ByteRange {
    if (offset < 0 || bytes < 1 || bytes > Long.MAX_VALUE - offset) {
      throw new InvalidRequestException(bytes + " bytes at " + offset + " are no range");
    }
  }

  /**
   * Reads {@code [OFFSET+]SIZE}, both as {@link ByteSize#parse} does.
   *
   * @throws InvalidRequestException if it is not that
   */
  public static ByteRange parse(String text) {
    int plus = text.indexOf('+');
    return plus < 0
        ? new ByteRange(0, ByteSize.parse(text))
        : new ByteRange(
            ByteSize.parse(text.substring(0, plus)), ByteSize.parse(text.substring(plus + 1)));
  }

  /** As {@link #parse} reads it. */
  @Override
  public String toString() {
    return offset + "+" + bytes;
  }
}
