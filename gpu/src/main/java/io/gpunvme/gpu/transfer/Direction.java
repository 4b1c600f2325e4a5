package io.gpunvme.gpu.transfer;

/** The direction of the data. */
public enum Direction {
  /** From the namespace into accelerator memory. */
  READ,
  /** From accelerator memory to the namespace. */
  WRITE
}
