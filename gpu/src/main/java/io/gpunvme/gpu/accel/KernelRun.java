package io.gpunvme.gpu.accel;

/** A kernel that was announced to an {@link Accelerator}, from its launch to its end. */
@FunctionalInterface
public interface KernelRun extends AutoCloseable {
  /** Says that the kernel is over. Idempotent; any thread. */
  @Override
  void close();
}
