package io.gpunvme.cuda;

/**
 * A CUDA library is not on this machine; the message says which one, and where it was looked for.
 */
public final class CudaNotFoundException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  /** {@code message} names the files and folders and says what to do. */
  public CudaNotFoundException(String message) {
    super(message);
  }
}
