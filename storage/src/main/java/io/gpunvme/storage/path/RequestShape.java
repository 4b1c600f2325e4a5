package io.gpunvme.storage.path;

import io.gpunvme.gpu.transfer.Direction;

/**
 * The facts of a request from which a path estimates its rate.
 *
 * @param direction read or write
 * @param ranges how many
 * @param bytes in all of them
 * @param resident share of those bytes that the page cache holds, 0..1; 0 if unknown
 */
public record RequestShape(Direction direction, int ranges, long bytes, double resident) {
  /** Mean bytes of a range. */
  public double meanLength() {
    return ranges == 0 ? 0 : (double) bytes / ranges;
  }
}
