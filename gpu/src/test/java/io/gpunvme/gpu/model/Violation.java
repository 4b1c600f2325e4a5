package io.gpunvme.gpu.model;

/** Thrown by a step that must never happen. */
final class Violation extends RuntimeException {
  private static final long serialVersionUID = 1;

  Violation(String what) {
    super(what, null, false, false);
  }
}
