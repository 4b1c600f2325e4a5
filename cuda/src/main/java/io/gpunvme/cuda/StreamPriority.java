package io.gpunvme.cuda;

/**
 * The priority of a stream: the GPU takes work of a higher priority first. Streams also share
 * hardware queues only with streams of their own priority (observed on an H200), so a stream whose
 * kernel waits does not hold up a stream of another priority.
 */
public enum StreamPriority {
  /** The default: computing. */
  NORMAL,
  /** Kernels that read and write storage, and wait for it. */
  HIGH,
  /** Copies that kernels wait for. */
  HIGHEST;

  /**
   * As the driver counts.
   *
   * @param highest the highest there is, 0 or below
   */
  int number(int highest) {
    return switch (this) {
      case NORMAL -> 0;
      case HIGH -> (highest - 1) / 2;
      case HIGHEST -> highest;
    };
  }
}
