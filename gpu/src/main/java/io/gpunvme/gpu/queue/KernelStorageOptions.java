package io.gpunvme.gpu.queue;

/**
 * The queues and buffers of a {@link KernelStorage}, on each of its SSDs.
 *
 * @param nsid the namespace
 * @param placement where the rings lie
 * @param queuePairs shared queue pairs; 0: {@link DeviceQueueOptions#QUEUE_PAIRS} or fewer
 * @param depth commands in flight per queue pair, a multiple of 32; 0: {@link
 *     DeviceQueueOptions#DEPTH} or fewer
 * @param buffers how many buffers can be registered at most, 1..65536
 */
public record KernelStorageOptions(
    int nsid, Placement placement, int queuePairs, int depth, int buffers) {
  private static final int BUFFERS = 64;

  /** Namespace 1; {@link KernelStorage#open} chooses everything else. */
  public static KernelStorageOptions in(Placement placement) {
    return new KernelStorageOptions(1, placement, 0, 0, BUFFERS);
  }

  /** The same with another namespace. */
  public KernelStorageOptions at(int namespace) {
    return new KernelStorageOptions(namespace, placement, queuePairs, depth, buffers);
  }

  /** The same with other queues. */
  public KernelStorageOptions with(int pairs, int perQueue) {
    return new KernelStorageOptions(nsid, placement, pairs, perQueue, buffers);
  }
}
