package io.gpunvme.models;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.models.format.ElementType;
import io.gpunvme.models.format.ModelFiles.Placed;
import io.gpunvme.models.format.TensorInfo;
import org.jspecify.annotations.Nullable;

/**
 * A tensor, or a part of one, that is to be loaded: rows of {@code width} bytes, {@code pitch}
 * bytes apart, the first at {@code offset} in file {@code file}.
 *
 * @param tensor which
 * @param slice null: all of it
 */
record Part(
    int file,
    TensorInfo tensor,
    @Nullable TensorSlice slice,
    long offset,
    long width,
    long pitch,
    long rows) {

  /**
   * A part.
   *
   * @throws InvalidRequestException if the slice does not fit the tensor, or cuts a block of a
   *     quantised type
   */
  static Part of(Placed placed, @Nullable TensorSlice slice) {
    TensorInfo t = placed.tensor();
    if (slice == null || isAll(t, slice)) {
      return new Part(placed.file(), t, null, t.offset(), t.bytes(), t.bytes(), 1);
    }
    if (slice.isBytes()) {
      return ofBytes(placed, slice);
    }
    int d = slice.dimension();
    if (d >= t.rank() || slice.stop() > t.dimension(d)) {
      throw new InvalidRequestException(
          "tensor '%s' has no slice %s: %s".formatted(t.name(), slice, t));
    }
    long inner = product(t, d + 1, t.rank());
    long rows = product(t, 0, d);
    long width = bytes(t, slice, (slice.stop() - slice.start()) * inner);
    long first = bytes(t, slice, slice.start() * inner);
    long pitch = bytes(t, slice, t.dimension(d) * inner);
    if (rows == 0 || width == 0) {
      return new Part(placed.file(), t, slice, t.offset(), 0, 0, 1);
    }
    return rows == 1
        ? new Part(placed.file(), t, slice, t.offset() + first, width, width, 1)
        : new Part(placed.file(), t, slice, t.offset() + first, width, pitch, rows);
  }

  private static Part ofBytes(Placed placed, TensorSlice slice) {
    TensorInfo t = placed.tensor();
    if (slice.stop() > t.bytes()) {
      throw new InvalidRequestException("tensor '%s' has no %s: %s".formatted(t.name(), slice, t));
    }
    long width = slice.stop() - slice.start();
    return new Part(placed.file(), t, slice, t.offset() + slice.start(), width, width, 1);
  }

  private static boolean isAll(TensorInfo t, TensorSlice s) {
    return !s.isBytes()
        && s.dimension() < t.rank()
        && s.start() == 0
        && s.stop() == t.dimension(s.dimension());
  }

  /** Fits a long: of the whole shape it does. */
  private static long product(TensorInfo t, int from, int to) {
    long product = 1;
    for (int i = from; i < to; i++) {
      product *= t.dimension(i);
    }
    return product;
  }

  private static long bytes(TensorInfo t, TensorSlice slice, long elements) {
    ElementType type = t.type();
    if (elements % type.blockElements() != 0) {
      throw new InvalidRequestException(
          "tensor '%s': slice %s cuts a block of %d elements of %s"
              .formatted(t.name(), slice, type.blockElements(), type));
    }
    return type.bytes(elements);
  }

  String name() {
    return tensor.name();
  }

  /** Bytes of it. */
  long bytes() {
    return width * rows;
  }

  /** Whether its bytes are in one piece. */
  boolean isContiguous() {
    return rows == 1;
  }

  /** Bytes from its first to its last one in the file. */
  long span() {
    return (rows - 1) * pitch + width;
  }

  /** Of the part, which has whole elements. */
  long[] shape() {
    long[] shape = tensor.shape();
    if (slice != null) {
      shape[slice.dimension()] = slice.stop() - slice.start();
    }
    return shape;
  }
}
