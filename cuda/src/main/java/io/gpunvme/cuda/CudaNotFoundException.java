package io.gpunvme.cuda;

/** A CUDA library is not on this machine; the message says what was looked for, and where. */
public final class CudaNotFoundException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** {@code message} names the files and folders and says what to do. */
  public CudaNotFoundException(String message) {
    super(message);
  }
}
