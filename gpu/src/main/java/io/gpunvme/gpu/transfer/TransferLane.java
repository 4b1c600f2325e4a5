package io.gpunvme.gpu.transfer;

import io.gpunvme.nvme.driver.CommandLoop;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair;
import io.gpunvme.nvme.spec.IoOpcode;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

/** One thread of a {@link CpuInitiator}: keeps its queue pairs full until the plan is done. */
final class TransferLane implements Runnable, CommandLoop.Source {
  private static final long LONGEST_NANOS = TimeUnit.HOURS.toNanos(1);
  private static final int SIGNIFICANT_DIGITS = 3;

  private final TransferJob job;
  private final TransferPlan plan;
  private final int opcode;
  private final CommandLoop loop;
  private final Histogram latency = new Histogram(LONGEST_NANOS, SIGNIFICANT_DIGITS);

  private long done;
  private long bytes;

  TransferLane(NvmeController controller, TransferJob job, List<QueuePair> queues, int retries) {
    this.job = job;
    this.plan = job.plan();
    this.opcode = plan.direction() == Direction.READ ? IoOpcode.READ : IoOpcode.WRITE;
    this.loop = new CommandLoop(controller, queues, retries);
  }

  @Override
  public void run() {
    loop.run(this);
  }

  // ---- the loop's source: a ticket is a command's number in the plan

  @Override
  public long take() {
    return job.take();
  }

  @Override
  public boolean hasMore() {
    return job.hasMore();
  }

  @Override
  public int submit(QueuePair queue, long ticket, long userData) {
    int command = (int) ticket;
    return queue.submitIo(
        opcode,
        plan.nsid(),
        plan.slba(command),
        plan.blocks(command),
        0,
        job.buffer(command),
        plan.bufferOffset(command),
        plan.bytes(command),
        userData);
  }

  @Override
  public void done(QueuePair queue, int slot, long ticket) {
    long moved = plan.bytes((int) ticket);
    done++;
    latency.recordValue(Math.min(LONGEST_NANOS, queue.latencyNanos(slot)));
    bytes += moved;
    job.listener().moved(moved);
  }

  @Override
  public void fail(Throwable failure) {
    job.fail(failure);
  }

  @Override
  public boolean stopped() {
    return job.failed();
  }

  @Override
  public void look() {
    if (Thread.currentThread().isInterrupted()) {
      job.cancel();
    }
    job.cancelIfAsked();
  }

  /** Commands that completed, those that were repeated included. */
  long commands() {
    return done + loop.retried();
  }

  long bytes() {
    return bytes;
  }

  long retries() {
    return loop.retried();
  }

  long recoveries() {
    return loop.recoveries();
  }

  Histogram latency() {
    return latency;
  }
}
