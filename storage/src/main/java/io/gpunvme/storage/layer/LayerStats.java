package io.gpunvme.storage.layer;

import java.util.List;

/**
 * The statistics of a loader. It counts layers that were read and taken, and, if a stream took
 * them, released and no longer used.
 *
 * @param layers how many
 * @param bytes of them
 * @param readNanos the sum of their read times
 * @param waitNanos the sum of the times that their takers waited
 * @param recent the last ones, at most 1024, oldest first
 */
public record LayerStats(
    long layers, long bytes, long readNanos, long waitNanos, List<LayerTiming> recent) {
  /** Copies the list. */
  public LayerStats {
    recent = List.copyOf(recent);
  }

  /** The share of the reading that nobody waited for, 0..1; 0 if nothing was read. */
  public double overlap() {
    return readNanos == 0 ? 0 : Math.clamp(1 - (double) waitNanos / readNanos, 0, 1);
  }
}
