package io.gpunvme.models.tensor;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;

/**
 * The arguments of a {@link TensorKernels#stridedCopy}, checked; its Javadoc says what they are.
 */
record StridedRows(
    DeviceBuffer source,
    long sourceOffset,
    long sourcePitch,
    DeviceBuffer target,
    long targetOffset,
    long targetPitch,
    long width,
    long rows) {
  private static final long WIDEST = 16;

  StridedRows {
    if (width < 0 || rows < 0 || sourcePitch < 0 || targetPitch < 0) {
      throw new InvalidRequestException(
          "%d rows of %d bytes with pitches of %d and %d bytes: none of these may be below 0"
              .formatted(rows, width, sourcePitch, targetPitch));
    }
    check("source", source, sourceOffset, sourcePitch, width, rows);
    check("target", target, targetOffset, targetPitch, width, rows);
    if (rows > 1 && targetPitch < width) {
      throw new InvalidRequestException(
          ("rows of %d bytes overlap in the target, where the next begins after %d:"
                  + " give it a pitch of %d at least")
              .formatted(width, targetPitch, width));
    }
    if (source.equals(target)
        && width > 0
        && rows > 0
        && sourceOffset < targetOffset + span(targetPitch, width, rows)
        && targetOffset < sourceOffset + span(sourcePitch, width, rows)) {
      throw new InvalidRequestException(
          ("%d rows of %d bytes from offset %d with pitch %d to offset %d with pitch %d of the same"
                  + " buffer overlap: copy through another buffer")
              .formatted(rows, width, sourceOffset, sourcePitch, targetOffset, targetPitch));
    }
  }

  private static void check(
      String which, DeviceBuffer buffer, long offset, long pitch, long width, long rows) {
    long room = buffer.size() - offset;
    long row = rows == 0 ? 0 : width;
    // Divides, as a product may be too large for a long.
    boolean fits =
        offset >= 0 && row <= room && (rows <= 1 || pitch == 0 || rows - 1 <= (room - row) / pitch);
    if (!fits) {
      throw new InvalidRequestException(
          "%d rows of %d bytes with a pitch of %d from offset %d are not inside the %s of %d bytes"
              .formatted(rows, width, pitch, offset, which, buffer.size()));
    }
  }

  /** From the start of the first row to the end of the last. */
  private static long span(long pitch, long width, long rows) {
    return (rows - 1) * pitch + width;
  }

  boolean isEmpty() {
    return width == 0 || rows == 0;
  }

  /** Whether the rows follow each other without gaps, in both. */
  boolean isContiguous() {
    return rows == 1 || sourcePitch == width && targetPitch == width;
  }

  /** Of all rows. */
  long bytes() {
    return width * rows;
  }

  /** 16, 8, 4, 2 or 1: the most by which all addresses at which rows begin and end are aligned. */
  int alignment() {
    long bits =
        source.deviceAddress() + sourceOffset
            | target.deviceAddress() + targetOffset
            | width
            | (rows == 1 ? 0 : sourcePitch | targetPitch)
            | WIDEST;
    return Math.toIntExact(Long.lowestOneBit(bits));
  }
}
