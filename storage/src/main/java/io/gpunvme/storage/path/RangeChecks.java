package io.gpunvme.storage.path;

import io.gpunvme.base.InvalidRequestException;
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
      if (r.offset() < 0 || r.length() < 0 || r.length() > size - r.offset()) {
        throw new InvalidRequestException(
            "%d bytes at %d are not inside %s, which has %d bytes"
                .formatted(r.length(), r.offset(), source, size));
      }
      if (r.bufferOffset() < 0 || r.length() > r.buffer().size() - r.bufferOffset()) {
        throw new InvalidRequestException(
            "%d bytes at %d are not inside the buffer of %d bytes"
                .formatted(r.length(), r.bufferOffset(), r.buffer().size()));
      }
      total = Math.addExact(total, r.length());
    }
    return total;
  }
}
