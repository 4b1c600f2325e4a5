package io.gpunvme.core.transfer;

/** Where queues and data lie; the project's tiers. */
public enum Placement {
  /** Tier 1: queues and data in host memory. */
  HOST,
  /** Tier 2: queues in host memory, data in GPU memory. */
  VRAM_DATA,
  /** Tier 3: queues and data in GPU memory. */
  VRAM
}
