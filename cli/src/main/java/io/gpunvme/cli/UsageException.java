package io.gpunvme.cli;

/** The command line asks for something that is not possible; the message says what and why. */
final class UsageException extends RuntimeException {
  private static final long serialVersionUID = 1;

  UsageException(String message) {
    super(message);
  }
}
