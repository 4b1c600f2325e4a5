package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Status;
import io.gpunvme.nvme.spec.StatusCode;
import org.jspecify.annotations.Nullable;

/**
 * Decides what a completion with an error means for its command. All drivers of a queue pair use
 * it: they call it inside {@link CompletionSink#completed}, on the queue's thread.
 */
public final class CompletionPolicy {
  private CompletionPolicy() {}

  /**
   * Whether repeating the command may succeed: DNR is clear, or what ended it was the host, whose
   * recovery says nothing about the command.
   *
   * @param status the 15-bit Status Field, not success
   */
  public static boolean mayRetry(int status) {
    return !Status.dnr(status) || endedByHost(StatusCode.of(status));
  }

  /**
   * The exception for a command that is not repeated any more: if recovery ended it {@link
   * ControllerFatalException} or {@link NvmeTimeoutException}, else {@link QueuePair#exception}.
   *
   * @param status the 15-bit Status Field, not success
   * @param attempts how often the command was submitted, this time included
   */
  public static NvmeException failure(QueuePair queue, int slot, int status, int attempts) {
    if (!recovered(queue, slot, status)) {
      return queue.exception(slot, status);
    }
    String fatal = queue.fatal();
    return fatal == null
        ? timeout(queue, slot, attempts)
        : new ControllerFatalException(
            "%s did not complete, %d times; the last time %s; the controller was reset"
                .formatted(command(queue, slot), attempts, fatal));
  }

  private static boolean endedByHost(@Nullable StatusCode code) {
    return code == StatusCode.ABORTED_BY_HOST
        || code == StatusCode.ABORT_REQUESTED
        || code == StatusCode.ABORTED_SQ_DELETION;
  }

  /** What the rungs of the recovery ladder make of a command that did not complete by itself. */
  private static boolean recovered(QueuePair queue, int slot, int status) {
    StatusCode code = StatusCode.of(status);
    if (code == StatusCode.ABORTED_BY_HOST) {
      // A ready queue takes completions from the controller only: it said so itself then.
      return queue.state() != QueuePair.State.READY;
    }
    if (code == StatusCode.ABORT_REQUESTED) {
      // Recovery aborts only what has expired; anything else was aborted by a caller.
      return queue.latencyNanos(slot) >= queue.timeoutNanos();
    }
    return code == StatusCode.ABORTED_SQ_DELETION;
  }

  private static NvmeTimeoutException timeout(QueuePair queue, int slot, int attempts) {
    return new NvmeTimeoutException(
        "%s did not complete within %d ms, %d times; the queue was recovered"
            .formatted(command(queue, slot), queue.timeoutNanos() / 1_000_000, attempts));
  }

  private static String command(QueuePair queue, int slot) {
    long slba = queue.slba(slot);
    return "%s%s on queue %d"
        .formatted(
            IoOpcode.name(queue.opcode(slot)), slba < 0 ? "" : " at LBA " + slba, queue.qid());
  }
}
