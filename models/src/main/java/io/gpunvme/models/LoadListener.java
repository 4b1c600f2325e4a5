package io.gpunvme.models;

/** Gets the progress of a load, from the thread that loads. */
public interface LoadListener {
  /** Ignores the progress. */
  LoadListener NONE = bytes -> {};

  /** Bytes of tensors have arrived. */
  void loaded(long bytes);
}
