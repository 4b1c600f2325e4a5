package io.gpunvme.models;

/** Who is told how a load goes on, by the thread that loads. */
public interface LoadListener {
  /** Nobody. */
  LoadListener NONE = bytes -> {};

  /** Bytes of tensors have arrived. */
  void loaded(long bytes);
}
