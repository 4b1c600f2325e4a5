package io.gpunvme.nvme.vfiouser;

import io.gpunvme.ffi.Errno;

/** The peer answered a message with an error. */
public final class RefusedException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int errno;

  /** The answer to a command was an error number. */
  public RefusedException(int command, int errno) {
    super(Command.name(command) + ": " + Errno.name(errno) + " (" + Errno.text(errno) + ")");
    this.errno = errno;
  }

  /** The error number, positive. */
  public int errno() {
    return errno;
  }
}
