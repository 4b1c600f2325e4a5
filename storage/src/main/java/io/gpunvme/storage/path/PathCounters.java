package io.gpunvme.storage.path;

import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.TransferListener;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.ConcurrentHistogram;
import org.HdrHistogram.Histogram;

/** The counters of one path. Safe for all threads. */
public final class PathCounters {
  private final LongAdder readBytes = new LongAdder();
  private final LongAdder writtenBytes = new LongAdder();
  private final LongAdder retries = new LongAdder();
  private final LongAdder stagedBytes = new LongAdder();
  private final LongAdder overreadBytes = new LongAdder();

  /** Of each operation; so it counts them, too. */
  private final Histogram latency =
      new ConcurrentHistogram(TransferListener.LONGEST_NANOS, TransferListener.DIGITS);

  /** Starts at 0. */
  public PathCounters() {}

  /** Requested bytes were moved. */
  public void moved(Direction direction, long bytes) {
    if (direction == Direction.READ) {
      read(bytes);
    } else {
      wrote(bytes);
    }
  }

  /** Requested bytes have arrived. */
  public void read(long bytes) {
    readBytes.add(bytes);
  }

  /** Bytes were written. */
  public void wrote(long bytes) {
    writtenBytes.add(bytes);
  }

  /** One operation of the path (a system call, a cuFile call, an NVMe command) is over. */
  public void operation(long nanos) {
    latency.recordValue(Math.clamp(nanos, 0, TransferListener.LONGEST_NANOS));
  }

  /** The latencies of operations in ns, for those who record them there. Safe for all threads. */
  public Histogram latencies() {
    return latency;
  }

  /** Operations that were repeated after a failure that may pass. */
  public void retried(long times) {
    retries.add(times);
  }

  /** Bytes went through the path's own memory. */
  public void staged(long bytes) {
    stagedBytes.add(bytes);
  }

  /** Bytes were moved only because they are in the same blocks, or between ranges. */
  public void overread(long bytes) {
    overreadBytes.add(bytes);
  }

  /** The counts now. */
  public PathStats snapshot() {
    Histogram latencies = latency.copy();
    return new PathStats(
        readBytes.sum(),
        writtenBytes.sum(),
        latencies.getTotalCount(),
        retries.sum(),
        stagedBytes.sum(),
        overreadBytes.sum(),
        latencies);
  }
}
