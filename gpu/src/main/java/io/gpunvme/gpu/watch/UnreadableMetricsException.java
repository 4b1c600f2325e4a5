package io.gpunvme.gpu.watch;

/** What a process tells of its controllers cannot be used; the message says why. */
public final class UnreadableMetricsException extends RuntimeException {
  private static final long serialVersionUID = 1;

  UnreadableMetricsException(String message) {
    super(message);
  }
}
