package io.gpunvme.tools.doctor;

import java.util.Locale;

/**
 * Reads into a GPU's memory whose last bytes a kernel looked at right after their completions.
 *
 * @param hostCompletions whether the completion queues were in host memory, else in the GPU's
 * @param used whether this is where gpunvme has them for data in GPU memory
 * @param bytes of each read
 * @param reads how many there were
 * @param late of them, those whose last 16 bytes were not there, or not all of them
 * @param longestNanos how long these took at most, from the completion on; 0 if none was late
 */
public record ArrivalCount(
    boolean hostCompletions, boolean used, long bytes, long reads, long late, long longestNanos) {
  @Override
  public String toString() {
    return late == 0
        ? "%d reads of %d bytes".formatted(reads, bytes)
        : String.format(
            Locale.ROOT,
            "%d of %d reads of %d bytes, up to %.1f us later",
            late,
            reads,
            bytes,
            longestNanos / 1e3);
  }
}
