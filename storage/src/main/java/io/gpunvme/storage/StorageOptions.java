package io.gpunvme.storage;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.transfer.InitiatorOptions;

/**
 * The options of a storage.
 *
 * @param allowWrite whether it may be written; off by default
 * @param initiator of the path {@code direct}: who issues the commands, the number of queues, and
 *     the place of queues and data
 * @param nsid namespace of a controller
 * @param threads asynchronous transfers at a time, 1..256
 */
public record StorageOptions(
    boolean allowWrite, InitiatorOptions initiator, int nsid, int threads) {
  private static final int THREADS = 8;

  /** Checks the numbers. */
  public StorageOptions {
    if (threads < 1 || threads > 256) {
      throw new InvalidRequestException("threads " + threads + " is outside 1..256");
    }
  }

  /** Reading only, and defaults for everything else. */
  public static StorageOptions defaults() {
    return new StorageOptions(false, InitiatorOptions.defaults(), 1, THREADS);
  }

  /** The same, writable or not. */
  public StorageOptions withWrite(boolean allowed) {
    return new StorageOptions(allowed, initiator, nsid, threads);
  }

  /** The same with another initiator. */
  public StorageOptions with(InitiatorOptions other) {
    return new StorageOptions(allowWrite, other, nsid, threads);
  }
}
