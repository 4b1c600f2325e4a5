package io.gpunvme.sim;

/**
 * Remote memory cannot be reached: its port failed, or it is not mapped any more. Ends a command
 * with Data Transfer Error; where a queue's own memory is concerned, the controller is fatal.
 */
final class RemoteFailure extends RuntimeException {
  private static final long serialVersionUID = 1;

  RemoteFailure(String message) {
    super(message);
  }

  RemoteFailure(String message, RuntimeException cause) {
    super(message, cause);
  }
}
