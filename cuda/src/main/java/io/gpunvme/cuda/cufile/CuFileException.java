package io.gpunvme.cuda.cufile;

import java.util.Optional;

/**
 * A call of cuFile failed. The message has the call and what it was about, cuFile's name of the
 * error, what it means, what to do next, and CUDA's code where CUDA was the reason: {@code
 * cuFileHandleRegister /data/a: CU_FILE_HANDLE_NOT_REGISTERED (5027, ...); ...}.
 *
 * <p>Errors of the file itself ({@code errno}) are {@link io.gpunvme.ffi.PosixException}s.
 */
public final class CuFileException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final String call;
  private final int code;
  private final int cudaResult;

  /**
   * An error that {@code call} returned.
   *
   * @param call the function, and where it helps what it was about
   * @param code the {@code CUfileOpError}
   * @param cudaResult the {@code CUresult} that came with it; 0 if none
   */
  public CuFileException(String call, int code, int cudaResult) {
    super(message(call, code, cudaResult));
    this.call = call;
    this.code = code;
    this.cudaResult = cudaResult;
  }

  private static String message(String call, int code, int cudaResult) {
    Optional<CuFileError> error = CuFileError.of(code);
    String name = error.map(CuFileError::symbol).orElse("cuFile error");
    String text = error.map(CuFileError::text).orElse("newer than this version");
    String advice = error.map(CuFileError::advice).orElse("");
    return "%s: %s (%d, %s%s)%s"
        .formatted(
            call,
            name,
            code,
            text,
            cudaResult == 0 ? "" : ", CUresult " + cudaResult,
            advice.isEmpty() ? "" : "; " + advice);
  }

  /** The function that failed, with what it was about. */
  public String call() {
    return call;
  }

  /** The {@code CUfileOpError}. */
  public int code() {
    return code;
  }

  /** The error, if this version knows it. */
  public Optional<CuFileError> error() {
    return CuFileError.of(code);
  }

  /** The {@code CUresult} that was the reason; 0 if none is known. */
  public int cudaResult() {
    return cudaResult;
  }
}
