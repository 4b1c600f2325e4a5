package io.gpunvme.cuda;

/**
 * A CUDA library is not on this machine; the message says which one, and where it was looked for.
 */
public final class CudaNotFoundException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String summary;

  /** {@code message} names the files and folders and says what to do. */
  public CudaNotFoundException(String message) {
    super(message);
    summary = message;
  }

  /**
   * With a long story.
   *
   * @param summary what is not there
   * @param story where it was looked for, and what to do
   */
  public CudaNotFoundException(String summary, String story) {
    super(summary + ": " + story);
    this.summary = summary;
  }

  /** The message without the places that were looked at. */
  public String summary() {
    return summary;
  }
}
