package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;

/**
 * Part of a tensor along one dimension, or of its bytes.
 *
 * @param dimension 0 for the slowest varying; {@link #BYTES} for bytes as they are stored, of any
 *     type
 * @param start first index
 * @param stop one past the last index, above {@code start}
 */
public record TensorSlice(int dimension, long start, long stop) {
  /** In place of a dimension: the numbers count bytes of the tensor. */
  public static final int BYTES = -1;

  /**
   * Checks.
   *
   * @throws InvalidRequestException if a number is negative, or the slice is empty
   */
  public TensorSlice {
    if (dimension < BYTES || start < 0 || stop <= start) {
      throw new InvalidRequestException(
          "slice %d:%d of dimension %d is empty or negative".formatted(start, stop, dimension));
    }
  }

  boolean isBytes() {
    return dimension == BYTES;
  }

  @Override
  public String toString() {
    return isBytes()
        ? "bytes %d:%d".formatted(start, stop)
        : "dim %d, %d:%d".formatted(dimension, start, stop);
  }
}
