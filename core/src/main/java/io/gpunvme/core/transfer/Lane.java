package io.gpunvme.core.transfer;

import io.gpunvme.nvme.driver.Backoff;
import io.gpunvme.nvme.driver.CompletionPolicy;
import io.gpunvme.nvme.driver.CompletionSink;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair;
import io.gpunvme.nvme.driver.RecoveryOutcome;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Status;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.HdrHistogram.Histogram;

/** One thread of a {@link CpuInitiator}: keeps its queue pairs full until the plan is done. */
final class Lane implements Runnable, CompletionSink {
  private static final long LONGEST_NANOS = TimeUnit.HOURS.toNanos(1);
  private static final int SIGNIFICANT_DIGITS = 3;

  /** Rounds between two looks at the clock. */
  private static final int ROUNDS_PER_CLOCK = 64;

  /** How often commands are checked for their deadlines, however busy the queues are. */
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  private static final CompletionSink DISCARD = (queue, slot, status) -> {};

  private final NvmeController controller;
  private final TransferJob job;
  private final List<QueuePair> queues;
  private final TransferPlan plan;
  private final int opcode;
  private final Histogram latency = new Histogram(LONGEST_NANOS, SIGNIFICANT_DIGITS);

  /** Commands to repeat; never more than are in flight. */
  private final int[] again;

  private int againCount;
  private long commands;
  private long bytes;
  private long retries;
  private long recoveries;

  Lane(NvmeController controller, TransferJob job, List<QueuePair> queues) {
    this.controller = controller;
    this.job = job;
    this.queues = queues;
    this.plan = job.plan();
    this.opcode = plan.direction() == Direction.READ ? IoOpcode.READ : IoOpcode.WRITE;
    // One more than can be in flight: a command taken from the plan that found its queue broken.
    this.again = new int[queues.stream().mapToInt(QueuePair::depth).sum() + 1];
  }

  @Override
  public void run() {
    try {
      loop();
    } catch (Throwable e) {
      // Errors too: a lane that dies in silence would leave commands at work in the caller's
      // buffer.
      job.fail(e);
      queues.forEach(this::abandon);
    }
  }

  private void loop() {
    Backoff backoff = new Backoff();
    long looked = System.nanoTime();
    boolean idleSince = true;
    boolean busy = true;
    for (int round = 1; busy; round++) {
      busy = false;
      boolean progress = false;
      for (int i = 0; i < queues.size(); i++) {
        QueuePair queue = queues.get(i);
        fill(queue);
        progress |= queue.poll(this) > 0;
        busy |= queue.inFlight() > 0;
      }
      busy |= !job.failed() && (againCount > 0 || job.hasMore());
      idleSince &= !progress;
      if (progress) {
        backoff.reset();
      } else if (busy) {
        backoff.pause();
      }
      if (anyBroken()) {
        mend(false);
      }
      if (round % ROUNDS_PER_CLOCK == 0 && System.nanoTime() - looked >= LOOK_NANOS) {
        mend(idleSince && controller.troubled());
        looked = System.nanoTime();
        idleSince = true;
        if (Thread.currentThread().isInterrupted()) {
          job.cancel();
        }
        job.cancelIfAsked();
      }
    }
  }

  private void fill(QueuePair queue) {
    if (job.failed()) {
      return;
    }
    while (queue.hasRoom()) {
      int command = againCount > 0 ? again[--againCount] : job.take();
      if (command < 0) {
        break;
      }
      int slot =
          queue.submitIo(
              opcode,
              plan.nsid(),
              plan.slba(command),
              plan.blocks(command),
              0,
              job.buffer(command),
              plan.bufferOffset(command),
              plan.bytes(command),
              command);
      if (slot < 0) {
        // Another thread's reset broke the queue between the question and the submission.
        again[againCount++] = command;
        break;
      }
    }
    queue.ring();
  }

  @Override
  public void completed(QueuePair queue, int slot, int status) {
    int command = (int) queue.userData(slot);
    commands++;
    if (Status.ok(status)) {
      latency.recordValue(Math.min(LONGEST_NANOS, queue.latencyNanos(slot)));
      bytes += plan.bytes(command);
      job.listener().moved(plan.bytes(command));
    } else if (CompletionPolicy.mayRetry(status) && job.mayRetry(command)) {
      retries++;
      again[againCount++] = command;
    } else {
      job.fail(CompletionPolicy.failure(queue, slot, status, job.attempts(command)));
    }
  }

  private boolean anyBroken() {
    for (int i = 0; i < queues.size(); i++) {
      if (queues.get(i).state() != QueuePair.State.READY) {
        return true;
      }
    }
    return false;
  }

  /**
   * Brings back queues that were reset under us, hold commands past their deadline, or belong to a
   * controller that says itself that waiting is pointless.
   */
  private void mend(boolean troubled) {
    long now = System.nanoTime();
    for (QueuePair queue : queues) {
      if (troubled || queue.state() != QueuePair.State.READY || queue.expired(now) >= 0) {
        recoveries++;
        RecoveryOutcome outcome = controller.recover(queue, this);
        if (outcome.failure() != null) {
          throw outcome.failure();
        }
      }
    }
  }

  /**
   * After a failure: nothing may stay with the controller when the caller gets its buffer back.
   * What recovery cannot take back, a controller that is gone or stopped will not complete either.
   */
  private void abandon(QueuePair queue) {
    if (queue.inFlight() == 0) {
      return;
    }
    queue.breakQueue();
    RuntimeException failure = controller.recover(queue, DISCARD).failure();
    if (failure != null) {
      job.fail(failure);
    }
  }

  long commands() {
    return commands;
  }

  long bytes() {
    return bytes;
  }

  long retries() {
    return retries;
  }

  long recoveries() {
    return recoveries;
  }

  Histogram latency() {
    return latency;
  }
}
