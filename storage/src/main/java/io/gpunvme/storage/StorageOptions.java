package io.gpunvme.storage;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.driver.ControllerOptions;

/**
 * The options of a storage.
 *
 * @param controller how the driver treats an SSD, and whether it, or a file, may be written
 * @param initiator of the path {@code direct}: who issues the commands, the number of queues, and
 *     the place of queues and data
 * @param nsid namespace of a controller
 * @param threads asynchronous transfers at a time, 1..256
 */
public record StorageOptions(
    ControllerOptions controller, InitiatorOptions initiator, int nsid, int threads) {
  private static final int THREADS = 8;

  /** Checks the numbers. */
  public StorageOptions {
    if (threads < 1 || threads > 256) {
      throw new InvalidRequestException("threads " + threads + " is outside 1..256");
    }
  }

  /** Reading only, and defaults for everything else. */
  public static StorageOptions defaults() {
    return new StorageOptions(
        ControllerOptions.defaults(), InitiatorOptions.defaults(), 1, THREADS);
  }

  /** Whether it may be written; not by default. */
  public boolean allowWrite() {
    return controller.allowWrite();
  }

  /** The same, writable or not. */
  public StorageOptions withWrite(boolean allowed) {
    return with(controller.withWrite(allowed));
  }

  /** The same with other timeouts and the like. */
  public StorageOptions with(ControllerOptions other) {
    return new StorageOptions(other, initiator, nsid, threads);
  }

  /** The same with another namespace. */
  public StorageOptions withNamespace(int other) {
    return new StorageOptions(controller, initiator, other, threads);
  }

  /** The same with another initiator. */
  public StorageOptions with(InitiatorOptions other) {
    return new StorageOptions(controller, other, nsid, threads);
  }

  /** The same with or without code in this process that uses CUDA and knows nothing of gpunvme. */
  public StorageOptions withForeignCuda(boolean there) {
    return with(initiator.withForeignCuda(there));
  }
}
