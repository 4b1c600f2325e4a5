package io.gpunvme.gpu.queue;

/**
 * A {@link KernelStorage} cannot do this now: kernels are waited for, or commands may still move
 * data. The message says which, and what ends them.
 */
public final class StorageBusyException extends IllegalStateException {
  private static final long serialVersionUID = 1;

  StorageBusyException(String message) {
    super(message);
  }
}
