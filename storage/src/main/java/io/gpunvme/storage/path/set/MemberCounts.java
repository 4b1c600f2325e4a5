package io.gpunvme.storage.path.set;

import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.storage.path.MemberStats;
import io.gpunvme.storage.path.PartListener;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import org.HdrHistogram.AtomicHistogram;
import org.HdrHistogram.Histogram;

/** The counts of one member. Safe for all threads; counting allocates nothing. */
final class MemberCounts implements PartListener {
  /** Two digits take 38 KiB, where the three of a path's histogram would take half a megabyte. */
  private static final int DIGITS = 2;

  private static final double MEDIAN = 50;
  private static final double TAIL = 99;

  private final String name;
  private final LongAdder readBytes = new LongAdder();
  private final LongAdder writtenBytes = new LongAdder();
  private final LongAdder requests = new LongAdder();
  private final LongAdder nanos = new LongAdder();
  private final LongAdder retries = new LongAdder();
  private final LongAdder failures = new LongAdder();
  private final LongAdder avoided = new LongAdder();
  private final AtomicLong outstandingBytes = new AtomicLong();
  private final Histogram latencies = new AtomicHistogram(TransferListener.LONGEST_NANOS, DIGITS);
  private final RecentRate recent;

  /**
   * @param now a time in ns, as all others
   */
  MemberCounts(String name, long now) {
    this.name = name;
    recent = new RecentRate(now);
  }

  @Override
  public void operation(long took) {
    latencies.recordValue(Math.clamp(took, 0, TransferListener.LONGEST_NANOS));
  }

  @Override
  public void retried(long times) {
    retries.add(times);
  }

  void begun(long bytes) {
    outstandingBytes.addAndGet(bytes);
  }

  /** Whatever became of it; before one of the two below. */
  void over(long bytes, long took) {
    outstandingBytes.addAndGet(-bytes);
    requests.increment();
    nanos.add(took);
  }

  void moved(Direction direction, long bytes, long took, long now) {
    (direction == Direction.READ ? readBytes : writtenBytes).add(bytes);
    recent.add(now, bytes, took);
  }

  void failed() {
    failures.increment();
  }

  /** Another member was given what this one might have had. */
  void avoided() {
    avoided.increment();
  }

  /** Bytes of requests that have begun and are not over. */
  long outstandingBytes() {
    return outstandingBytes.get();
  }

  MemberStats stats(long now, String slow, String failure) {
    Histogram seen = latencies.copy();
    return new MemberStats(
        name,
        readBytes.sum(),
        writtenBytes.sum(),
        requests.sum(),
        seen.getTotalCount(),
        seen.getValueAtPercentile(MEDIAN),
        seen.getValueAtPercentile(TAIL),
        nanos.sum(),
        recent.gigabytesPerSecond(now),
        retries.sum(),
        failures.sum(),
        avoided.sum(),
        slow,
        failure);
  }
}
