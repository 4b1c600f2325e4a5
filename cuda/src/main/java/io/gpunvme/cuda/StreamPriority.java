package io.gpunvme.cuda;

/**
 * Whose work a GPU takes first, and more than that: streams share hardware queues with others of
 * their priority only (as far as an H200 shows), so that one whose kernel waits for something holds
 * up no stream of another priority.
 */
public enum StreamPriority {
  /** What everybody has who asks for nothing: computing. */
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
