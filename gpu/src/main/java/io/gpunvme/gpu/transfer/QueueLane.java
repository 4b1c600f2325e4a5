package io.gpunvme.gpu.transfer;

import io.gpunvme.base.Claim;
import io.gpunvme.nvme.driver.CommandLoop;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair;
import java.util.List;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * Queue pairs that one thread drives at a time, with what is kept for them from one transfer to the
 * next. Whoever took it from the {@link LanePool} has it alone.
 */
final class QueueLane {
  private final List<QueuePair> queues;
  private final CommandLoop loop;
  private final ShortTransfer shortTransfer;
  private final Claim claim = new Claim();
  private final boolean forShort;
  private final boolean wide;
  private final int slots;
  private @Nullable Histogram latency;

  /**
   * @param forShort only short transfers take it
   */
  QueueLane(NvmeController controller, List<QueuePair> queues, int retries, boolean forShort) {
    this.queues = List.copyOf(queues);
    this.forShort = forShort;
    wide = forShort && queues.size() > 1;
    loop = new CommandLoop(controller, queues, retries);
    shortTransfer = new ShortTransfer(loop);
    slots = queues.stream().mapToInt(QueuePair::depth).sum();
  }

  List<QueuePair> queues() {
    return queues;
  }

  CommandLoop loop() {
    return loop;
  }

  /** What carries out a short transfer by this lane. */
  ShortTransfer shortTransfer() {
    return shortTransfer;
  }

  boolean isForShort() {
    return forShort;
  }

  /** Whether a short transfer is to be cut for several queue pairs. */
  boolean isWide() {
    return wide;
  }

  /** Who has it, if it is for short transfers; the pool keeps account of the others. */
  Claim claim() {
    return claim;
  }

  /** The most commands that it has in flight. */
  int slots() {
    return slots;
  }

  /** An empty histogram of latencies in ns, for the present transfer. */
  Histogram latency() {
    Histogram there = latency;
    if (there == null) {
      there = TransferListener.newLatencies();
      latency = there;
    } else {
      there.reset();
    }
    return there;
  }

  long sqDoorbells() {
    long sum = 0;
    for (int i = 0; i < queues.size(); i++) {
      sum += queues.get(i).sqDoorbells();
    }
    return sum;
  }

  long cqDoorbells() {
    long sum = 0;
    for (int i = 0; i < queues.size(); i++) {
      sum += queues.get(i).cqDoorbells();
    }
    return sum;
  }
}
