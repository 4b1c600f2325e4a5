package io.gpunvme.gpu.transfer;

import io.gpunvme.gpu.queue.Placement;
import org.HdrHistogram.Histogram;

/**
 * The report of a transfer.
 *
 * @param path the path of the bytes; {@code direct} is NVMe commands of our own
 * @param initiator who issued the commands
 * @param placement the place of queues and data
 * @param queuePairs queue pairs used: fewer than the initiator has by a short transfer, or while
 *     other transfers of the CPU use some
 * @param depth commands in flight per queue pair at most
 * @param threads threads that drove them; of a GPU, warps
 * @param commands commands completed, repeated ones included
 * @param sqDoorbells submission doorbell stores; those of short transfers that a GPU carried out
 *     together are all told with one of them
 * @param cqDoorbells completion doorbell stores, told likewise
 * @param bytes bytes moved
 * @param nanos wall-clock time
 * @param retries commands repeated after a status that allows it
 * @param recoveries times a queue had to be recovered
 * @param latency per command, ns: from its submission (for the CPU: the first submission of its
 *     batch) to the poll that saw it complete; the {@link TransferListener#latencies listener's}
 */
public record TransferReport(
    String path,
    String initiator,
    Placement placement,
    int queuePairs,
    int depth,
    int threads,
    long commands,
    long sqDoorbells,
    long cqDoorbells,
    long bytes,
    long nanos,
    long retries,
    long recoveries,
    Histogram latency) {
  /** Latency in ns at a percentile, 0..100. */
  public long latencyNanos(double percentile) {
    return latency.getValueAtPercentile(percentile);
  }

  /** 10^9 bytes per second. */
  public double gigabytesPerSecond() {
    return nanos == 0 ? 0 : (double) bytes / nanos;
  }
}
