package io.gpunvme.base;

/** The caller's request is not possible: an LBA past the end, a misaligned buffer. */
public final class InvalidRequestException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The message names the argument, its value and the allowed range. */
  public InvalidRequestException(String message) {
    super(message);
  }
}
