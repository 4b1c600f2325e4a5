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
 * @param recovering whether {@link KernelStorage#await} recovers an SSD in trouble while the kernel
 *     goes on, instead of telling the kernel to stop
 */
public record KernelStorageOptions(
    int nsid, Placement placement, int queuePairs, int depth, int buffers, boolean recovering) {
  private static final int BUFFERS = 64;

  /** Without recoveries while kernels run. */
  public KernelStorageOptions(
      int nsid, Placement placement, int queuePairs, int depth, int buffers) {
    this(nsid, placement, queuePairs, depth, buffers, false);
  }

  /** Namespace 1; {@link KernelStorage#open} chooses everything else. */
  public static KernelStorageOptions in(Placement placement) {
    return new KernelStorageOptions(1, placement, 0, 0, BUFFERS);
  }

  /** The same with another namespace. */
  public KernelStorageOptions at(int namespace) {
    return new KernelStorageOptions(namespace, placement, queuePairs, depth, buffers, recovering);
  }

  /** The same with other queues. */
  public KernelStorageOptions with(int pairs, int perQueue) {
    return new KernelStorageOptions(nsid, placement, pairs, perQueue, buffers, recovering);
  }

  /**
   * The same with recoveries while kernels run: {@link KernelStorage#await} recovers queue pairs
   * that the SSD has lost, or that have lost commands. Commands that were in flight there are
   * submitted again, once, by calls that wait for one command; ranges of several, {@code submit}
   * and {@code read_async} return {@link DeviceStatus#ABORTED_BY_HOST} for theirs. Callers without
   * a slot wait for the recovery, until their deadline, where they would fail at once.
   *
   * <p>Each kernel that runs must be waited for all the time: queues that a kernel has left in the
   * middle of a recovery are recovered when nobody waits for a kernel any more.
   */
  public KernelStorageOptions withRecovery() {
    return new KernelStorageOptions(nsid, placement, queuePairs, depth, buffers, true);
  }
}
