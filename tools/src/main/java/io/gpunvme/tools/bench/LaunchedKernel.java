package io.gpunvme.tools.bench;

/** A kernel that was started. */
interface LaunchedKernel {
  /** Whether it has ended; never waits. */
  boolean isOver();

  /** How long it ran, ns; it is over. */
  long nanos();
}
