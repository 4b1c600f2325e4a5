package io.gpunvme.gpu.transfer;

/** Which way the data goes. */
public enum Direction {
  /** From the namespace into accelerator memory. */
  READ,
  /** From accelerator memory to the namespace. */
  WRITE
}
