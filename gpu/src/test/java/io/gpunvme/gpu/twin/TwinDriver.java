package io.gpunvme.gpu.twin;

/** What drives a queue in {@link TwinDevice}. */
enum TwinDriver {
  /** Any number of threads, as {@code SharedQueue}. */
  SHARED(true, 0),
  /** Any number of threads, as {@code ServedQueue}, and as many that serve. */
  SERVED(true, 0),
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
      String name = this == SERVED ? "twin_served" : shared ? "twin_shared" : "twin_exclusive";
      library.function(name, void.class, long.class).call(job);
    }
  }
}
