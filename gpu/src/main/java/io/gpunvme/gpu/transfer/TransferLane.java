package io.gpunvme.gpu.transfer;

import io.gpunvme.nvme.driver.CommandLoop;
import io.gpunvme.nvme.driver.QueuePair;
import org.HdrHistogram.Histogram;

/**
 * One thread's part in a long transfer of a {@link CpuInitiator}: it keeps the queue pairs of a
 * lane full until the plan is done, or until somebody else is to have the lane.
 */
final class TransferLane implements CommandLoop.Source {
  private final TransferJob job;
  private final TransferPlan plan;
  private final QueueLane lane;
  private final LanePool pool;
  private final Runnable looked;
  private final Histogram latency;
  private final long sqBefore;
  private final long cqBefore;
  private final long retriedBefore;
  private final long recoveriesBefore;

  /** Commands to be submitted before the lane may go to somebody else. */
  private int turn;

  private boolean givesBack;
  private long done;
  private long bytes;

  /**
   * @param looked called now and then while it runs
   */
  TransferLane(TransferJob job, QueueLane lane, LanePool pool, Runnable looked) {
    this.job = job;
    this.lane = lane;
    this.pool = pool;
    this.looked = looked;
    plan = job.plan();
    latency = lane.latency();
    turn = lane.slots();
    sqBefore = lane.sqDoorbells();
    cqBefore = lane.cqDoorbells();
    retriedBefore = lane.loop().retried();
    recoveriesBefore = lane.loop().recoveries();
  }

  /** Carries out commands, and gives the lane back. Failures go to the job. */
  void run() {
    try {
      lane.loop().run(this);
      job.add(lane, this);
    } catch (Throwable e) {
      job.fail(e);
    } finally {
      pool.give(lane, givesBack);
    }
  }

  // ---- the loop's source: a ticket is a command's number in the plan

  @Override
  public long take() {
    if (--turn < 0 && !givesBack) {
      givesBack = pool.shouldGiveBack();
    }
    return givesBack ? CommandLoop.NONE : job.take();
  }

  @Override
  public boolean hasMore() {
    return !givesBack && job.hasMore();
  }

  @Override
  public int submit(QueuePair queue, long ticket, long userData) {
    int command = (int) ticket;
    return queue.submitIo(
        plan.opcode(command),
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
    int command = (int) ticket;
    long moved = plan.bytes(command);
    long nanos = Math.min(TransferListener.LONGEST_NANOS, queue.latencyNanos(slot));
    done++;
    latency.recordValue(nanos);
    bytes += moved;
    job.completed(command, nanos);
    job.moved(moved);
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
    looked.run();
  }

  // ---- what it did

  /** Commands that completed, those that were repeated included. */
  long commands() {
    return done + retries();
  }

  long bytes() {
    return bytes;
  }

  long retries() {
    return lane.loop().retried() - retriedBefore;
  }

  long recoveries() {
    return lane.loop().recoveries() - recoveriesBefore;
  }

  long sqDoorbells() {
    return lane.sqDoorbells() - sqBefore;
  }

  long cqDoorbells() {
    return lane.cqDoorbells() - cqBefore;
  }

  /** Latencies that are not in the job's histogram yet. */
  Histogram latency() {
    return latency;
  }
}
