package io.gpunvme.nvme;

/** The controller reports a fatal error (CSTS.CFS, Base 2.0, 3.1.3.6); only a reset can help. */
public final class ControllerFatalException extends NvmeException {
  private static final long serialVersionUID = 1;

  /** The message names the state the controller was in and CSTS. */
  public ControllerFatalException(String message) {
    super(message);
  }
}
