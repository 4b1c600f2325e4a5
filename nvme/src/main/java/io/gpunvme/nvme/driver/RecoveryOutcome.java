package io.gpunvme.nvme.driver;

import org.jspecify.annotations.Nullable;

/**
 * The outcome of the recovery ladder for one queue pair.
 *
 * @param rung the rung that succeeded, or {@link Rung#FAILED}
 * @param ended how many commands were ended by the host, with status Command Aborted By Host
 * @param nanos how long it took
 * @param detail what happened, one line
 * @param failure why it failed, or null
 */
public record RecoveryOutcome(
    Rung rung, int ended, long nanos, String detail, @Nullable RuntimeException failure) {
  /** From the gentlest to the last. */
  public enum Rung {
    /** There was nothing to recover, or looking at the completion queue once more was enough. */
    POLL,
    /** The expired commands were aborted. */
    ABORT,
    /** The queue pair was deleted and created anew. */
    QUEUE,
    /** The controller was reset, here or by another caller, and the queue pair created anew. */
    RESET,
    /** Nothing helped: the controller is out of service and the queue pair broken. */
    FAILED
  }

  /** Whether the queue pair can be used again. */
  public boolean recovered() {
    return rung != Rung.FAILED;
  }

  @Override
  public String toString() {
    return "%s after %.1f ms: %s".formatted(rung, nanos / 1e6, detail);
  }
}
