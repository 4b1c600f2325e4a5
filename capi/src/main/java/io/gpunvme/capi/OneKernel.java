package io.gpunvme.capi;

import io.gpunvme.gpu.queue.KernelHandle;
import io.gpunvme.gpu.queue.RunningKernel;
import java.time.Duration;

/** A kernel of a storage that is stopped and waited for by itself, with those given the same. */
final class OneKernel extends KernelGroup {
  private final Kernels kernels;
  private final KernelHandle handle;

  OneKernel(Kernels kernels, KernelHandle handle) {
    super(kernels.memory(), kernels.name());
    this.kernels = kernels;
    this.handle = handle;
  }

  /** Closing the storage waits for what is done with this, too. */
  @Override
  <T> T whileOpen(Work<T> work) {
    return kernels.whileOpen(() -> super.whileOpen(work));
  }

  @Override
  boolean closing() {
    return super.closing() || kernels.closing();
  }

  @Override
  Kernels storage() {
    return kernels;
  }

  @Override
  long address() {
    return handle.deviceHandle();
  }

  @Override
  boolean awaitKernel(RunningKernel kernel, Duration limit) {
    return handle.await(kernel, limit);
  }

  @Override
  boolean troubled() {
    return kernels.troubled();
  }

  @Override
  void tellToStop(boolean value) {
    handle.stop(value);
  }

  @Override
  void giveBack() {
    handle.close();
  }
}
