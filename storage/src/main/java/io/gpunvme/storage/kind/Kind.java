package io.gpunvme.storage.kind;

import io.gpunvme.base.InvalidRequestException;

/**
 * An array in a source: elements of one size, one after the other. Kinds may overlap.
 *
 * @param number its number in requests, 0 or more
 * @param name another name for it; empty if it has none
 * @param offset of element 0, bytes from the source's start
 * @param length bytes, 0 or more; bytes after the last whole element are not used
 * @param element bytes of one element, 1 or more
 */
public record Kind(int number, String name, long offset, long length, long element) {
  /**
   * Checks.
   *
   * @throws InvalidRequestException if anything is not as said above, or the end is at 2^63 or
   *     later
   */
  public Kind {
    if (number < 0) {
      throw new InvalidRequestException("kind number " + number + " is negative");
    }
    if (offset < 0 || length < 0 || element < 1 || length > Long.MAX_VALUE - offset) {
      throw new InvalidRequestException(
          "%s: offset %d, length %d and element %d bytes are not possible"
              .formatted(label(number, name), offset, length, element));
    }
  }

  private static String label(int number, String name) {
    return name.isEmpty() ? "kind " + number : "kind '" + name + "' (" + number + ")";
  }

  /** How many elements. */
  public long count() {
    return length / element;
  }

  /**
   * The first byte of an element in the source.
   *
   * @param index 0 to count
   * @param elements the number of elements from there; the last one must be inside, too
   * @throws InvalidRequestException if they are not all inside
   */
  public long offset(long index, long elements) {
    if (index < 0 || elements < 0 || index > count() - elements) {
      throw new InvalidRequestException(
          "%s: index %d, length %d: it has only %d elements, counted from 0"
              .formatted(label(number, name), index, elements, count()));
    }
    return offset + index * element;
  }

  @Override
  public String toString() {
    return "%s: %d elements of %d bytes at %d"
        .formatted(label(number, name), count(), element, offset);
  }
}
