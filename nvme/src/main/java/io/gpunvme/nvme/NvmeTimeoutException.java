package io.gpunvme.nvme;

/** A wait on the controller reached its deadline, and recovery did not bring the command back. */
public final class NvmeTimeoutException extends NvmeException {
  private static final long serialVersionUID = 1;

  /** The message names the wait, its deadline and the registers at expiry. */
  public NvmeTimeoutException(String message) {
    super(message);
  }
}
