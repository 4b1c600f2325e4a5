package io.gpunvme.cuda;

/** Device code could not be loaded; the driver's compiler says why in its log. */
public final class CudaModuleException extends CudaException {
  private static final long serialVersionUID = 1L;

  private final String log;

  /**
   * An error that loading returned.
   *
   * @param log of the driver's compiler, possibly empty
   */
  public CudaModuleException(String call, int code, String name, String text, String log) {
    super(call, code, name, log.isEmpty() ? text : text + "; log: " + log);
    this.log = log;
  }

  /** The log of the driver's compiler, possibly empty. */
  public String log() {
    return log;
  }
}
