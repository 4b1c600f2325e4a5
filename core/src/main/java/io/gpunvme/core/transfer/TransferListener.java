package io.gpunvme.core.transfer;

/** Told of progress while a transfer runs; called by several threads. */
@FunctionalInterface
public interface TransferListener {
  /** Ignores progress. */
  TransferListener NONE = bytes -> {};

  /** Another {@code bytes} bytes have arrived. */
  void moved(long bytes);
}
