package io.gpunvme.gpu.queue;

/** A kernel did not end, so the queues of its {@link KernelStorage} are gone for good. */
public final class KernelHungException extends IllegalStateException {
  private static final long serialVersionUID = 1;

  KernelHungException(String message) {
    super(message);
  }
}
