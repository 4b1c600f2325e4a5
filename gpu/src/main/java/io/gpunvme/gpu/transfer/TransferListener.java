package io.gpunvme.gpu.transfer;

/** Told of progress while a transfer runs, and asked to go on; called by several threads. */
@FunctionalInterface
public interface TransferListener {
  /** Ignores progress. */
  TransferListener NONE = bytes -> {};

  /** Another {@code bytes} bytes have arrived. */
  void moved(long bytes);

  /** Whether the transfer is to end early; asked now and then. It fails then. */
  default boolean isCancelled() {
    return false;
  }
}
