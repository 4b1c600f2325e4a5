package io.gpunvme.gpu.queue;

import java.lang.foreign.MemorySegment;

/**
 * The device code that carries out plans, {@code kernels/transfer.cu}: one warp per queue pair
 * takes commands from a common cursor until all are taken and every one is over, or the host says
 * stop. Two may run at a time.
 */
public interface TransferKernel extends AutoCloseable {
  /**
   * Starts it.
   *
   * @param args {@link DeviceLayout.TransferArgs}; copied now
   * @param blockShift log2 of the logical block's bytes
   * @param queuePairs how many structures there are at {@code args.queues}
   */
  RunningKernel start(MemorySegment args, int blockShift, int queuePairs);

  /** Frees the device code. No run is under way. */
  @Override
  void close();
}
