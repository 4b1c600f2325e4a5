package io.gpunvme.nvme;

/** The caller asked for something that cannot be done: an LBA past the end, a misaligned buffer. */
public final class InvalidRequestException extends NvmeException {
  private static final long serialVersionUID = 1;

  /** The message names the argument, its value and the allowed range. */
  public InvalidRequestException(String message) {
    super(message);
  }
}
