package io.gpunvme.core.bench;

/** A kernel that was started. */
interface KernelRun {
  /** Whether it has ended; never waits. */
  boolean isOver();

  /** How long it ran, ns; it is over. */
  long nanos();
}
