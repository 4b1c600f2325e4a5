package io.gpunvme.models.tensor;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.format.ElementType;
import java.util.Collections;
import java.util.EnumSet;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A matrix of quantised elements, one row behind the other, and where its floats go, in the same
 * order. Tensors of more dimensions are matrices of more rows.
 *
 * @param type of the elements, one of {@link #TYPES}
 * @param source of the elements
 * @param sourceOffset bytes from its start; the address is a multiple of {@link #alignment}
 * @param targetType of the floats, one of {@link #TARGETS}
 * @param target of the floats; it does not overlap with the source or the scales
 * @param targetOffset bytes from its start; the address is a multiple of 16
 * @param rows &gt;= 0
 * @param columns whole blocks of the type, &gt;= 0
 * @param scales by which the elements are multiplied; null: by none. Only of types without blocks,
 *     whose scales are in them
 */
public record Quantized(
    ElementType type,
    DeviceBuffer source,
    long sourceOffset,
    ElementType targetType,
    DeviceBuffer target,
    long targetOffset,
    long rows,
    long columns,
    @Nullable Scales scales) {
  /** The types that can be read. */
  public static final Set<ElementType> TYPES =
      Collections.unmodifiableSet(
          EnumSet.of(
              ElementType.Q4_0,
              ElementType.Q8_0,
              ElementType.Q4_K,
              ElementType.Q5_K,
              ElementType.Q6_K,
              ElementType.I8,
              ElementType.F8_E4M3,
              ElementType.F8_E5M2));

  /** The types that can be written. */
  public static final Set<ElementType> TARGETS =
      Collections.unmodifiableSet(EnumSet.of(ElementType.F32, ElementType.F16, ElementType.BF16));

  /** Bytes that a thread stores at once. */
  private static final int WIDEST = 16;

  /**
   * One F32 for each block of rows and columns: row after row of blocks, of which the last ones of
   * a row or a column may be cut.
   *
   * @param offset bytes from the start of the buffer; the address is a multiple of 4
   * @param blockRows of a block, &gt;= 1
   * @param blockColumns of a block, &gt;= 1
   */
  public record Scales(DeviceBuffer buffer, long offset, long blockRows, long blockColumns) {
    /** Checks the numbers; {@link Quantized} checks the place. */
    public Scales {
      if (blockRows < 1 || blockColumns < 1) {
        throw new InvalidRequestException(
            "a scale for %d rows and %d columns: it has to be one of each at least"
                .formatted(blockRows, blockColumns));
      }
    }
  }

  /**
   * Checks everything that can be known.
   *
   * @throws UnsupportedTypeException if one of the types is another
   * @throws InvalidRequestException if rows are not whole blocks, something leaves its buffer,
   *     addresses are not multiples of what they have to be, or the target overlaps
   */
  public Quantized {
    requireSupported(type, targetType);
    if (rows < 0 || columns < 0 || rows > 0 && columns > Long.MAX_VALUE / rows) {
      throw new InvalidRequestException(
          "%d rows of %d columns are no matrix".formatted(rows, columns));
    }
    type.bytes(columns); // whole blocks
    Range from =
        Range.of("source", source, sourceOffset, type.bytes(rows * columns), alignment(type));
    Range to = Range.of("target", target, targetOffset, targetType.bytes(rows * columns), WIDEST);
    requireApart(from, to);
    if (scales != null) {
      if (type.blockElements() > 1) {
        throw new InvalidRequestException(
            "elements of " + type + " have their scales in their blocks, and no others");
      }
      long count = scaleRows(rows, scales) * scaleColumns(columns, scales);
      requireApart(
          Range.of(
              "scales", scales.buffer, scales.offset, ElementType.F32.bytes(count), Float.BYTES),
          to);
    }
  }

  private static void requireSupported(ElementType type, ElementType targetType) {
    if (!TYPES.contains(type) || !TARGETS.contains(targetType)) {
      throw new UnsupportedTypeException(
          "no floats of type %s are made of elements of type %s: it can be %s of %s"
              .formatted(targetType, type, TARGETS, TYPES));
    }
  }

  /** Bytes of which the address of the elements is a multiple: 16, or what their blocks allow. */
  public static int alignment(ElementType type) {
    return Math.min(WIDEST, Integer.lowestOneBit(type.blockBytes()));
  }

  private static long scaleRows(long rows, Scales scales) {
    return Math.ceilDiv(rows, scales.blockRows);
  }

  private static long scaleColumns(long columns, Scales scales) {
    return Math.ceilDiv(columns, scales.blockColumns);
  }

  /** Scales of a row of blocks; 0 without scales. */
  long scaleColumns() {
    return scales == null ? 0 : scaleColumns(columns, scales);
  }

  long elements() {
    return rows * columns;
  }

  private static void requireApart(Range other, Range target) {
    if (other.start < target.end && target.start < other.end) {
      throw new InvalidRequestException(
          "the target at %Xh overlaps with the %s at %Xh"
              .formatted(target.start, other.what, other.start));
    }
  }

  /** Addresses as the accelerator has them. */
  private record Range(String what, long start, long end) {
    static Range of(String what, DeviceBuffer buffer, long offset, long bytes, int alignment) {
      if (offset < 0 || bytes > buffer.size() - offset) {
        throw new InvalidRequestException(
            "%d bytes from offset %d are not inside the %s of %d bytes"
                .formatted(bytes, offset, what, buffer.size()));
      }
      long start = buffer.deviceAddress() + offset;
      if (start % alignment != 0) {
        throw new InvalidRequestException(
            "the %s is at %Xh, which is not a multiple of %d".formatted(what, start, alignment));
      }
      return new Range(what, start, start + bytes);
    }
  }
}
