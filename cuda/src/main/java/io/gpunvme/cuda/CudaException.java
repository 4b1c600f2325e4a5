package io.gpunvme.cuda;

/**
 * A call of the CUDA driver API failed. The message has the call with its object, CUDA's name and
 * text of the error and, if the user can do something about it, what to do: {@code cuMemAlloc
 * 1099511627776 bytes: CUDA_ERROR_OUT_OF_MEMORY (2, out of memory); allocate less or end other
 * users of the GPU}.
 */
public class CudaException extends RuntimeException {
  public static final int INVALID_VALUE = 1;
  public static final int OUT_OF_MEMORY = 2;
  public static final int DEINITIALIZED = 4;
  public static final int NO_DEVICE = 100;
  public static final int NOT_FOUND = 500;
  public static final int NOT_READY = 600;
  public static final int ILLEGAL_ADDRESS = 700;
  public static final int CONTEXT_IS_DESTROYED = 709;
  public static final int HOST_MEMORY_ALREADY_REGISTERED = 712;
  public static final int NOT_PERMITTED = 800;
  public static final int NOT_SUPPORTED = 801;

  private static final long serialVersionUID = 1L;

  private final String call;
  private final int code;
  private final String name;
  private final String text;

  /**
   * An error that {@code call} returned.
   *
   * @param call the function, and its object if that helps
   * @param code the {@code CUresult}
   * @param name CUDA's name of the code, as in {@code CUDA_ERROR_INVALID_VALUE}
   * @param text CUDA's text for it
   */
  public CudaException(String call, int code, String name, String text) {
    super(message(call, code, name, text));
    this.call = call;
    this.code = code;
    this.name = name;
    this.text = text;
  }

  private static String message(String call, int code, String name, String text) {
    String advice = ErrorAdvice.of(code);
    String error = call + ": " + name + " (" + code + ", " + text + ")";
    return advice.isEmpty() ? error : error + "; " + advice;
  }

  /** The function that failed, with its object. */
  public String call() {
    return call;
  }

  /** The {@code CUresult}. */
  public int code() {
    return code;
  }

  /** CUDA's name of the code, as in {@code CUDA_ERROR_INVALID_VALUE}. */
  public String name() {
    return name;
  }

  /** CUDA's text for the code. */
  public String text() {
    return text;
  }

  /**
   * Whether a kernel or the device failed in a way that makes every later call of this process on
   * the context fail too (a sticky error): only a new process can use the GPU again.
   */
  public boolean contextLost() {
    return ErrorAdvice.sticky(code);
  }
}
