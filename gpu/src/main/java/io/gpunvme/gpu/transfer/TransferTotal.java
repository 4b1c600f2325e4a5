package io.gpunvme.gpu.transfer;

import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/** Adds up transfers that were parts of one job. Not safe for several threads. */
public final class TransferTotal {
  private @Nullable TransferReport sum;

  /** Nothing yet. */
  public TransferTotal() {}

  /** Adds the next part's report; path, initiator and queues must be those of the other parts. */
  public void add(TransferReport next) {
    TransferReport before = sum;
    sum = before == null ? next : sum(before, next);
  }

  /**
   * The sum; times are added, for the parts ran one after another.
   *
   * @throws IllegalStateException if there was none
   */
  public TransferReport report() {
    TransferReport total = sum;
    if (total == null) {
      throw new IllegalStateException("nothing was transferred");
    }
    return total;
  }

  private static TransferReport sum(TransferReport a, TransferReport b) {
    Histogram latency = a.latency().copy();
    latency.add(b.latency());
    return new TransferReport(
        a.path(),
        a.initiator(),
        a.placement(),
        a.queuePairs(),
        a.depth(),
        a.threads(),
        a.commands() + b.commands(),
        a.sqDoorbells() + b.sqDoorbells(),
        a.cqDoorbells() + b.cqDoorbells(),
        a.bytes() + b.bytes(),
        a.nanos() + b.nanos(),
        a.retries() + b.retries(),
        a.recoveries() + b.recoveries(),
        latency);
  }
}
