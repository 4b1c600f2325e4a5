package io.gpunvme.cuda;

/**
 * The readers that see writes of other PCIe devices into GPU memory in order without a flush
 * ({@code CUGPUDirectRDMAWritesOrdering}); also how far a flush reaches.
 */
public enum WritesOrdering {
  /** No reader: a flush is needed before a kernel reads. */
  NONE(0),
  /** For the GPU that owns the memory. */
  OWNER(100),
  /** For every GPU. */
  ALL_DEVICES(200);

  private final int number;

  WritesOrdering(int number) {
    this.number = number;
  }

  int number() {
    return number;
  }

  /** The strongest that {@code number} promises. */
  static WritesOrdering of(int number) {
    if (number >= ALL_DEVICES.number) {
      return ALL_DEVICES;
    }
    return number >= OWNER.number ? OWNER : NONE;
  }
}
