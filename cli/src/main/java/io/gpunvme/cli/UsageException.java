package io.gpunvme.cli;

/** The command line asks for something that makes no sense; the message says what and why. */
final class UsageException extends RuntimeException {
  private static final long serialVersionUID = 1;

  UsageException(String message) {
    super(message);
  }
}
