package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;

/** The place of queues and data; the project's tiers. */
public enum Placement {
  /** Tier 1: queues and data in host memory. */
  HOST,
  /**
   * Tier 2: queues in host memory, data in GPU memory. Completion queues of a real SSD are in GPU
   * memory, too: see {@link CompletionPlace}.
   */
  VRAM_DATA,
  /** Tier 3: queues and data in GPU memory. */
  VRAM;

  /** Whether the submission queues are in host memory. */
  public boolean hostQueues() {
    return this != VRAM;
  }

  /** Whether the data is in host memory. */
  public boolean hostData() {
    return this == HOST;
  }

  /** Allocates memory for data of this placement. */
  public DeviceBuffer allocate(Accelerator accelerator, long bytes) {
    return hostData() ? accelerator.allocatePinned(bytes) : accelerator.allocate(bytes);
  }

  /** As it is written on a command line: {@code host}, {@code vram-data}, {@code vram}. */
  @Override
  public String toString() {
    return switch (this) {
      case HOST -> "host";
      case VRAM_DATA -> "vram-data";
      case VRAM -> "vram";
    };
  }
}
