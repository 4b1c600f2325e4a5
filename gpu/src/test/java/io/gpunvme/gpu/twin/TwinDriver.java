package io.gpunvme.gpu.twin;

/** What drives a queue in {@link TwinDevice}. */
enum TwinDriver {
  /** Any number of threads, as {@code SharedQueue}. */
  SHARED(true, 0),
  /** A warp, as {@code ExclusiveQueue}. */
  WARP(false, 0),
  /** Blocks, as {@code BlockQueue}. */
  BLOCK_OF_1(false, 1),
  BLOCK(false, 4),
  BLOCK_OF_7(false, 7);

  private final boolean shared;
  private final int warps;

  TwinDriver(boolean shared, int warps) {
    this.shared = shared;
    this.warps = warps;
  }

  /** Whether the queues are laid out for any number of threads. */
  boolean shared() {
    return shared;
  }

  /** Runs a job of {@link TwinJob} to its end. */
  void run(TwinLibrary library, long job) {
    if (warps != 0) {
      library.function("twin_block", void.class, long.class, int.class).call(job, warps);
    } else {
      library.function(shared ? "twin_shared" : "twin_exclusive", void.class, long.class).call(job);
    }
  }
}
