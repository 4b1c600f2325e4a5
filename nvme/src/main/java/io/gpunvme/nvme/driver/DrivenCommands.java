package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.driver.RecoveryOutcome.Rung;
import io.gpunvme.nvme.spec.StatusCode;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/** The outstanding commands of a {@link QueuePair}, handled by the thread that drives it. */
final class DrivenCommands implements Outstanding {
  /** How long a completion may lag behind the Abort that could not find its command. */
  private static final long LAG_NANOS = TimeUnit.MILLISECONDS.toNanos(5);

  private final QueuePair pair;
  private final CompletionSink sink;
  private final Recovery recovery;
  private final long timeoutNanos;

  /**
   * @param recovery sends the Aborts
   * @param timeoutNanos for all Aborts and the completions they lead to
   */
  DrivenCommands(QueuePair pair, CompletionSink sink, Recovery recovery, long timeoutNanos) {
    this.pair = pair;
    this.sink = sink;
    this.recovery = recovery;
    this.timeoutNanos = timeoutNanos;
  }

  @Override
  public @Nullable Rung settle() {
    if (pair.state() != QueuePair.State.READY) {
      return null;
    }
    pair.poll(sink);
    if (pair.expired(System.nanoTime()) < 0) {
      return Rung.POLL;
    }
    return abortExpired() ? Rung.ABORT : null;
  }

  /** Bounded as a whole by the timeout: with many expired commands the queue goes instead. */
  private boolean abortExpired() {
    long began = System.nanoTime();
    int slot = pair.expired(began);
    while (slot >= 0) {
      boolean taken;
      try {
        taken = recovery.abort(pair.qid(), pair.cid(slot));
      } catch (NvmeStatusException e) {
        taken = false;
      }
      long left = timeoutNanos - (System.nanoTime() - began);
      if (!comesBack(slot, taken ? left : Math.min(left, LAG_NANOS))) {
        pair.quarantine(slot);
        return false;
      }
      slot = pair.expired(System.nanoTime());
    }
    return true;
  }

  private boolean comesBack(int slot, long nanos) {
    long began = System.nanoTime();
    Backoff backoff = new Backoff();
    while (pair.expired(System.nanoTime()) == slot) {
      int consumed = pair.poll(sink);
      if (System.nanoTime() - began >= nanos) {
        return pair.expired(System.nanoTime()) != slot;
      }
      if (consumed == 0) {
        backoff.pause();
      }
    }
    return true;
  }

  @Override
  public void collect() {
    pair.poll(sink);
  }

  @Override
  public int end(@Nullable String fatal) {
    pair.fatal(fatal);
    return pair.failAll(StatusCode.ABORTED_BY_HOST.status(), sink);
  }
}
