package io.gpunvme.cuda.nvml;

/** A function of NVML failed; the message has its name and what NVML calls the error. */
public final class NvmlException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int code;

  NvmlException(String function, int code, String text) {
    super(function + ": " + text + " (" + code + ")");
    this.code = code;
  }

  /** NVML's number of the error. */
  public int code() {
    return code;
  }
}
