package io.gpunvme.models.format;

import io.gpunvme.base.InvalidRequestException;
import java.util.Arrays;

/**
 * A tensor in a file: its type, shape and place. Its bytes are contiguous, little endian, in
 * row-major order.
 *
 * @param name unique in its file; may be empty
 * @param shape elements along each dimension, the slowest varying first, as in safetensors and
 *     NumPy. GGUF has the reverse order, which is reversed on reading. No dimension: a scalar. A
 *     dimension of 0: no bytes.
 * @param offset first byte in the file
 * @param bytes how many, as type and shape require
 */
public record TensorInfo(String name, ElementType type, long[] shape, long offset, long bytes) {
  /**
   * Checks that everything fits together.
   *
   * @throws InvalidRequestException if it does not
   */
  public TensorInfo {
    shape = shape.clone();
    if (bytes != type.bytes(elements(shape))) {
      throw new InvalidRequestException(
          "%s of %s has %d bytes, not %d"
              .formatted(Arrays.toString(shape), type, type.bytes(elements(shape)), bytes));
    }
    if (offset < 0 || offset > Long.MAX_VALUE - bytes) {
      throw new InvalidRequestException(
          "%d bytes at %d are not a possible place".formatted(bytes, offset));
    }
  }

  /**
   * How many elements a shape has.
   *
   * @throws InvalidRequestException if a dimension is negative, or these are more than can be
   *     counted (before a later dimension is 0, too)
   */
  static long elements(long[] shape) {
    long elements = 1;
    for (long dimension : shape) {
      if (dimension < 0 || (dimension > 0 && elements > Long.MAX_VALUE / dimension)) {
        throw new InvalidRequestException(
            "the shape %s is negative or has 2^63 elements or more"
                .formatted(Arrays.toString(shape)));
      }
      elements *= dimension;
    }
    return elements;
  }

  /** A copy. */
  @Override
  public long[] shape() {
    return shape.clone();
  }

  /** How many dimensions; 0 for a scalar. */
  public int rank() {
    return shape.length;
  }

  /** Elements along a dimension, 0 for the slowest varying. */
  public long dimension(int index) {
    return shape[index];
  }

  /** How many elements. */
  public long elements() {
    return elements(shape);
  }

  /** The first byte of the file after it. */
  public long end() {
    return offset + bytes;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof TensorInfo(var n, var t, var s, var o, var b)
        && name.equals(n)
        && type == t
        && Arrays.equals(shape, s)
        && offset == o
        && bytes == b;
  }

  @Override
  public int hashCode() {
    return name.hashCode() * 31 + Long.hashCode(offset);
  }

  @Override
  public String toString() {
    return "%s %s%s, %d bytes at %d".formatted(name, type, Arrays.toString(shape), bytes, offset);
  }
}
