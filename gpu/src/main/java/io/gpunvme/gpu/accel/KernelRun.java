package io.gpunvme.gpu.accel;

/** A kernel that an {@link Accelerator} was told of, from its launch to its end. */
@FunctionalInterface
public interface KernelRun extends AutoCloseable {
  /** It is over. Idempotent; any thread. */
  @Override
  void close();
}
