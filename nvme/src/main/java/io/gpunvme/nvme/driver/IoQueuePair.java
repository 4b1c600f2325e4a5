package io.gpunvme.nvme.driver;

/**
 * A queue pair as {@link IoQueues} and {@link Recovery} see it: what the controller must be told,
 * and whether it is good for anything. Who drives it, and how, is not their concern.
 */
abstract sealed class IoQueuePair permits QueuePair, ExternalQueuePair {
  /** Identifier of both queues. */
  public abstract int qid();

  /** Submission queue entries. */
  public abstract int sqSize();

  /** Completion queue entries. */
  public abstract int cqSize();

  abstract long sqBusAddress();

  abstract long cqBusAddress();

  /** What the pair is good for. Any thread. */
  public abstract QueuePair.State state();

  /** Empties both rings for a pair that the controller does not know, and makes it ready. */
  abstract void rebuild();

  /** Marks a ready pair as broken. Any thread. */
  abstract void breakQueue();

  /** Frees what the pair has, for good. Only after the controller forgot it. Idempotent. */
  abstract void close();
}
