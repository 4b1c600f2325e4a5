package io.gpunvme.gpu.transfer;

/**
 * An earlier transfer has left an initiator unusable. Of the one that throws this nothing was
 * submitted: another initiator can carry it out.
 */
public final class BrokenInitiatorException extends IllegalStateException {
  private static final long serialVersionUID = 1;

  /**
   * @param reason why the earlier transfer failed
   */
  public BrokenInitiatorException(Throwable reason) {
    super("this initiator cannot be used any more; open another: " + reason.getMessage(), reason);
  }
}
