package io.gpunvme.storage.path;

import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.TransferListener;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.AtomicHistogram;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/** The counters of one path. Safe for all threads. */
public final class PathCounters {
  /** A power of two. */
  private static final int HISTOGRAMS = 8;

  private final LongAdder readBytes = new LongAdder();
  private final LongAdder writtenBytes = new LongAdder();
  private final LongAdder retries = new LongAdder();
  private final LongAdder stagedBytes = new LongAdder();
  private final LongAdder overreadBytes = new LongAdder();

  /**
   * Latencies of each operation; so they count them, too. Several, so that many threads do not
   * write the same words; made when needed first, for one is half a megabyte.
   */
  private final AtomicReferenceArray<@Nullable Histogram> latencies =
      new AtomicReferenceArray<>(HISTOGRAMS);

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
    latencies().recordValue(Math.clamp(nanos, 0, TransferListener.LONGEST_NANOS));
  }

  /**
   * Where this thread's transfer records the latencies of operations in ns; other threads record
   * there, too. Safe for all threads.
   */
  public Histogram latencies() {
    int place = (int) Thread.currentThread().threadId() & (HISTOGRAMS - 1);
    Histogram there = latencies.get(place);
    return there == null ? firstLatencies(place) : there;
  }

  private Histogram firstLatencies(int place) {
    // Its counts are read five times as fast as a ConcurrentHistogram's, which can also grow.
    Histogram made = new AtomicHistogram(TransferListener.LONGEST_NANOS, TransferListener.DIGITS);
    Histogram other = latencies.compareAndExchange(place, null, made);
    return other == null ? made : other;
  }

  /** Operations that were repeated after a failure that may pass. */
  public void retried(long times) {
    if (times != 0) {
      retries.add(times);
    }
  }

  /** Bytes went through the path's own memory. */
  public void staged(long bytes) {
    stagedBytes.add(bytes);
  }

  /** Bytes were moved only because they are in the same blocks, or between ranges. */
  public void overread(long bytes) {
    overreadBytes.add(bytes);
  }

  /** What was read until now; takes a thousandth of the time of {@link #snapshot}. */
  public ReadBytes bytes() {
    return new ReadBytes(readBytes.sum(), overreadBytes.sum());
  }

  /** The counts now. */
  public PathStats snapshot() {
    Histogram sum = TransferListener.newLatencies();
    for (int i = 0; i < HISTOGRAMS; i++) {
      Histogram part = latencies.get(i);
      if (part != null) {
        // Threads may record there meanwhile: what it adds is what it counts.
        sum.add(part);
      }
    }
    return new PathStats(
        readBytes.sum(),
        writtenBytes.sum(),
        sum.getTotalCount(),
        retries.sum(),
        stagedBytes.sum(),
        overreadBytes.sum(),
        sum);
  }
}
