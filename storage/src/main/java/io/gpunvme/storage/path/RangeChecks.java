package io.gpunvme.storage.path;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.util.List;

/** Checks of ranges before a path gets them. */
public final class RangeChecks {
  private RangeChecks() {}

  /**
   * Checks ranges and adds up their lengths.
   *
   * @param size of the source, bytes
   * @throws InvalidRequestException if one is not inside the source or its buffer
   */
  public static long check(String source, long size, List<Range> ranges) {
    long total = 0;
    for (Range r : ranges) {
      check(source, size, r.offset(), r.buffer(), r.bufferOffset(), r.length());
      total = Math.addExact(total, r.length());
    }
    return total;
  }

  /** One past the last byte of all ranges in the source, which are still to be checked. */
  public static long end(List<Range> ranges) {
    long end = 0;
    for (Range r : ranges) {
      end = Math.max(end, r.offset() + r.length());
    }
    return end;
  }

  /**
   * Checks one range.
   *
   * @throws InvalidRequestException if it is not inside the source or its buffer, or a device that
   *     could not be stopped may still write to the buffer
   */
  public static void check(
      String source, long size, long offset, DeviceBuffer buffer, long bufferOffset, long length) {
    inside(source, size, offset, length);
    if (bufferOffset < 0 || length > buffer.size() - bufferOffset) {
      throw new InvalidRequestException(
          "%d bytes at %d are not inside the buffer of %d bytes"
              .formatted(length, bufferOffset, buffer.size()));
    }
    String doubt = buffer.inDoubt();
    if (doubt != null) {
      throw new InvalidRequestException("use another buffer: " + doubt);
    }
  }

  /**
   * Checks bytes of a source.
   *
   * @throws InvalidRequestException if they are not all inside
   */
  public static void inside(String source, long size, long offset, long length) {
    if (offset < 0 || length < 0 || length > size - offset) {
      throw new InvalidRequestException(
          "%d bytes at %d are not inside %s, which has %d bytes"
              .formatted(length, offset, source, size));
    }
  }
}
