package io.gpunvme.gpu.transfer;

/** Gets the progress of a transfer, and may cancel it. Several threads call it. */
@FunctionalInterface
public interface TransferListener {
  /** Ignores progress. */
  TransferListener NONE = bytes -> {};

  /** Another {@code bytes} bytes have arrived. */
  void moved(long bytes);

  /** Whether to end the transfer early; called now and then. If true, the transfer fails. */
  default boolean isCancelled() {
    return false;
  }
}
