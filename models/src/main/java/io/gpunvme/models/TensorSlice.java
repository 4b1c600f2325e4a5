package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;

/**
 * Part of a tensor along one dimension.
 *
 * @param dimension 0 for the slowest varying
 * @param start first index
 * @param stop one past the last index, above {@code start}
 */
public record TensorSlice(int dimension, long start, long stop) {
  /**
   * Checks.
   *
   * @throws InvalidRequestException if a number is negative, or the slice is empty
   */
  public TensorSlice {
    if (dimension < 0 || start < 0 || stop <= start) {
      throw new InvalidRequestException(
          "slice %d:%d of dimension %d is empty or negative".formatted(start, stop, dimension));
    }
  }

  @Override
  public String toString() {
    return "dim %d, %d:%d".formatted(dimension, start, stop);
  }
}
