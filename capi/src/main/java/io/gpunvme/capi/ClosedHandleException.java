package io.gpunvme.capi;

/** A handle was closed, or never was one. */
final class ClosedHandleException extends RuntimeException {
  private static final long serialVersionUID = 1;

  ClosedHandleException(String message) {
    super(message);
  }
}
