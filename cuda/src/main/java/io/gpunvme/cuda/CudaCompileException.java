package io.gpunvme.cuda;

/** NVRTC refused a program; the message ends with its log, which names file and line. */
public final class CudaCompileException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String log;

  /**
   * An error of the compiler.
   *
   * @param message what failed, why
   * @param log of the compiler, possibly empty
   */
  public CudaCompileException(String message, String log) {
    super(log.isEmpty() ? message : message + "\n" + log);
    this.log = log;
  }

  /** The compiler's log, possibly empty. */
  public String log() {
    return log;
  }
}
