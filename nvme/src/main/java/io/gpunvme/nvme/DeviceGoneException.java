package io.gpunvme.nvme;

/** Registers read as all ones: the device was removed, lost power, or its link is down. */
public final class DeviceGoneException extends NvmeException {
  private static final long serialVersionUID = 1;

  /** The message names the read that returned all ones. */
  public DeviceGoneException(String message) {
    super(message);
  }
}
