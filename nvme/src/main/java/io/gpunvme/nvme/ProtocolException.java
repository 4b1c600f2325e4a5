package io.gpunvme.nvme;

/**
 * The controller did or said something the specification rules out, e.g. impossible identify data.
 */
public final class ProtocolException extends NvmeException {
  private static final long serialVersionUID = 1;

  /** The message names the field, its value and the rule it breaks. */
  public ProtocolException(String message) {
    super(message);
  }
}
