package io.gpunvme.nvme;

/**
 * A command was ended by the host (abort, queue deletion or controller reset) before it completed.
 */
public final class CommandAbortedException extends NvmeException {
  private static final long serialVersionUID = 1;

  /** The message names the command and what ended it. */
  public CommandAbortedException(String message) {
    super(message);
  }
}
