package io.gpunvme.gpu.queue;

/**
 * The queues that a kernel gets.
 *
 * @param placement the place of the rings; the data's place is chosen by its allocation
 * @param shared for any number of threads ({@code SharedQueue}), or each for one warp ({@code
 *     ExclusiveQueue})
 * @param queuePairs how many; 0: {@link #QUEUE_PAIRS} or as many as the controller has
 * @param depth commands in flight per queue pair, a multiple of 32 for shared queues; 0: {@link
 *     #DEPTH} or as many as the controller's rings allow
 * @param recovering whether the host may recover shared queues while kernels use them; see {@link
 *     KernelStorageOptions#recovering}
 */
public record DeviceQueueOptions(
    Placement placement, boolean shared, int queuePairs, int depth, boolean recovering) {
  /** Queue pairs by default. */
  public static final int QUEUE_PAIRS = 4;

  /** Commands in flight per queue pair by default. */
  public static final int DEPTH = 256;

  /** Queues that one warp each drives. */
  public static DeviceQueueOptions exclusive(Placement placement, int queuePairs, int depth) {
    return new DeviceQueueOptions(placement, false, queuePairs, depth, false);
  }

  /** Queues for any number of threads. */
  public static DeviceQueueOptions shared(Placement placement, int queuePairs, int depth) {
    return new DeviceQueueOptions(placement, true, queuePairs, depth, false);
  }
}
