package io.gpunvme.gpu.transfer;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;

/**
 * A transfer that a GPU is to carry out, by the thread that asked for it or by another one that
 * joins it with its own. What the job has become is seen by its thread once it is over.
 */
final class GpuRequest {
  private enum State {
    WAITS,
    LEADS,
    OVER
  }

  /** How often a thread that waits asks whether to end its job. */
  private static final long ASKS_NANOS = TimeUnit.MILLISECONDS.toNanos(10);

  private final TransferJob job;
  private final long[] descriptions;
  private final Thread owner = Thread.currentThread();
  private volatile State state = State.WAITS;
  private @Nullable TransferReport report;

  /**
   * @param descriptions device address of each buffer's {@code struct Buffer}
   */
  GpuRequest(TransferJob job, long[] descriptions) {
    this.job = job;
    this.descriptions = descriptions;
  }

  TransferJob job() {
    return job;
  }

  long[] descriptions() {
    return descriptions;
  }

  /** By whoever carried it out. */
  void report(TransferReport what) {
    report = what;
  }

  /**
   * What happened. Asked for by its thread, when it is over.
   *
   * @throws RuntimeException why the job failed
   */
  TransferReport report() {
    job.throwIfFailed();
    TransferReport there = report;
    if (there == null) {
      throw new IllegalStateException("a transfer ended without a report");
    }
    return there;
  }

  /** Its thread is the next to carry out those that wait. */
  void lead() {
    tell(State.LEADS);
  }

  /** Somebody else has carried it out. */
  void end() {
    tell(State.OVER);
  }

  private void tell(State next) {
    state = next;
    if (owner != Thread.currentThread()) {
      LockSupport.unpark(owner);
    }
  }

  /** Whether it is the calling thread's. */
  boolean isMine() {
    return owner == Thread.currentThread();
  }

  /**
   * Waits until it is over, or for its thread to lead. An interrupt cancels the job, and the flag
   * is kept.
   *
   * @return whether its thread is to lead
   */
  boolean awaitLead() {
    boolean interrupted = false;
    while (state == State.WAITS) {
      LockSupport.parkNanos(this, ASKS_NANOS);
      // A thread with the flag set would not sleep.
      if (Thread.interrupted()) {
        interrupted = true;
        job.cancel();
      }
      if (state == State.WAITS) {
        job.cancelIfAsked();
      }
    }
    if (interrupted) {
      owner.interrupt();
    }
    return state == State.LEADS;
  }
}
