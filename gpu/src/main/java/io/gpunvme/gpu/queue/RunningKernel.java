package io.gpunvme.gpu.queue;

/** A kernel that was launched; for a CUDA stream, {@code stream::isIdle}. */
@FunctionalInterface
public interface RunningKernel {
  /**
   * Whether it has ended; never waits.
   *
   * @throws RuntimeException if it ended in an error of the accelerator, which is then unusable
   */
  boolean isOver();
}
