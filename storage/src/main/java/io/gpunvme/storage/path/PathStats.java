package io.gpunvme.storage.path;

import org.HdrHistogram.Histogram;

/**
 * The counts of one path.
 *
 * @param readBytes requested bytes that were read
 * @param writtenBytes bytes written
 * @param operations system calls, cuFile calls or NVMe commands
 * @param retries operations repeated
 * @param stagedBytes bytes that went through the path's own memory
 * @param overreadBytes bytes moved without being requested
 * @param latency of the operations, ns
 */
public record PathStats(
    long readBytes,
    long writtenBytes,
    long operations,
    long retries,
    long stagedBytes,
    long overreadBytes,
    Histogram latency) {
  private static final double MEDIAN = 50;
  private static final double TAIL = 99;

  /** Both together. */
  public PathStats plus(PathStats other) {
    Histogram both = latency.copy();
    both.add(other.latency);
    return new PathStats(
        readBytes + other.readBytes,
        writtenBytes + other.writtenBytes,
        operations + other.operations,
        retries + other.retries,
        stagedBytes + other.stagedBytes,
        overreadBytes + other.overreadBytes,
        both);
  }

  /** One line; of the latency only how many, median, 99th percentile and largest. */
  @Override
  public String toString() {
    return ("PathStats[readBytes=%d, writtenBytes=%d, operations=%d, retries=%d, stagedBytes=%d,"
            + " overreadBytes=%d, latency=[count=%d, median=%d ns, p99=%d ns, max=%d ns]]")
        .formatted(
            readBytes,
            writtenBytes,
            operations,
            retries,
            stagedBytes,
            overreadBytes,
            latency.getTotalCount(),
            latency.getValueAtPercentile(MEDIAN),
            latency.getValueAtPercentile(TAIL),
            latency.getMaxValue());
  }
}
