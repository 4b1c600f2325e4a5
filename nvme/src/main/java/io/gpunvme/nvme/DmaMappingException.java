package io.gpunvme.nvme;

/** Memory could not be made reachable for a controller. */
public non-sealed class DmaMappingException extends NvmeException {
  private static final long serialVersionUID = 1;

  /** The message names the range and the limit. */
  public DmaMappingException(String message) {
    super(message);
  }

  /** As above, with the system error that caused it. */
  public DmaMappingException(String message, Throwable cause) {
    super(message, cause);
  }
}
