package io.gpunvme.core.transfer;

import io.gpunvme.nvme.driver.NvmeController;

/**
 * How many queues and threads a transfer gets. 0 leaves a number to {@link #open}, which then stays
 * within what the controller has.
 *
 * @param queuePairs I/O queue pairs; 0: {@link #QUEUE_PAIRS} or fewer
 * @param depth commands in flight per queue pair; 0: {@link #DEPTH} or fewer
 * @param threads threads that drive the queue pairs; 0: half the processors or fewer
 * @param retries how often a command that may be retried is repeated, 0..100
 */
public record InitiatorOptions(int queuePairs, int depth, int threads, int retries) {
  /** Queue pairs unless another number is asked for. */
  public static final int QUEUE_PAIRS = 4;

  /** Commands in flight per queue pair unless another number is asked for. */
  public static final int DEPTH = 16;

  private static final int RETRIES = 8;
  private static final int MOST_THREADS = 4;

  /** Everything left to {@link #open}. */
  public static InitiatorOptions defaults() {
    return new InitiatorOptions(0, 0, 0, RETRIES);
  }

  /** The same with other numbers. */
  public InitiatorOptions with(int pairs, int perQueue, int drivers) {
    return new InitiatorOptions(pairs, perQueue, drivers, retries);
  }

  /**
   * How many threads one side of a transfer gets on this machine: the other side needs some too.
   */
  public static int suitableThreads() {
    return Math.clamp(Runtime.getRuntime().availableProcessors() / 2, 1, MOST_THREADS);
  }

  /**
   * Creates the queue pairs.
   *
   * @throws io.gpunvme.nvme.InvalidRequestException if a number that was given is out of range
   */
  public CpuInitiator open(NvmeController controller) {
    int pairs =
        queuePairs == 0 ? Math.clamp(controller.maxQueuePairs(), 1, QUEUE_PAIRS) : queuePairs;
    int perQueue = depth == 0 ? Math.min(DEPTH, controller.maxDepth()) : depth;
    int drivers = threads == 0 ? Math.min(suitableThreads(), pairs) : threads;
    return new CpuInitiator(controller, pairs, perQueue, drivers, retries);
  }
}
