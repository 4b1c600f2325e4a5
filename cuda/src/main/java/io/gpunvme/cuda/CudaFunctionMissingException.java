package io.gpunvme.cuda;

/**
 * The library that was found is older than a function asked for. The rest of it can be used; the
 * message names the function and the library's version.
 */
public final class CudaFunctionMissingException extends CudaException {
  private static final long serialVersionUID = 1L;

  /**
   * {@code library} has not got {@code function}.
   *
   * @param library its file and version
   */
  public CudaFunctionMissingException(String function, String library) {
    super(
        function, NOT_FOUND, "CUDA_ERROR_NOT_FOUND", library + " has no such function: update it");
  }
}
