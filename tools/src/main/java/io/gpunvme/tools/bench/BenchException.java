package io.gpunvme.tools.bench;

/** A benchmark counted or moved something wrong, or did not end: there is no result. */
public final class BenchException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** Says what was wrong, with the numbers. */
  public BenchException(String message) {
    super(message);
  }
}
