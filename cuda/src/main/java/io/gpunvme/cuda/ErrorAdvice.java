package io.gpunvme.cuda;

/** What somebody who sees a CUDA error can do about it. */
final class ErrorAdvice {
  private static final int STUB_LIBRARY = 34;
  private static final int CALL_REQUIRES_NEWER_DRIVER = 36;
  private static final int NO_BINARY_FOR_GPU = 209;
  private static final int UNSUPPORTED_PTX_VERSION = 222;
  private static final int SYSTEM_NOT_READY = 802;
  private static final int SYSTEM_DRIVER_MISMATCH = 803;

  private ErrorAdvice() {}

  /** Empty where the error says everything. */
  static String of(int code) {
    return switch (code) {
      case CudaException.OUT_OF_MEMORY ->
          "allocate less or end other users of the GPU (nvidia-smi)";
      case STUB_LIBRARY -> "this is the toolkit's stub: put the driver's libcuda.so.1 before it";
      case CALL_REQUIRES_NEWER_DRIVER, UNSUPPORTED_PTX_VERSION -> "update the NVIDIA driver";
      case CudaException.NO_DEVICE ->
          "check that nvidia-smi lists a GPU and that CUDA_VISIBLE_DEVICES does not hide it";
      case NO_BINARY_FOR_GPU -> "build the kernel for this GPU, or hand over PTX";
      case CudaException.NOT_PERMITTED -> "the user or the container lacks a permission for this";
      case SYSTEM_NOT_READY -> "wait for, or start, nvidia-fabricmanager";
      case SYSTEM_DRIVER_MISMATCH ->
          "the kernel module is of another version than libcuda: reboot after an update";
      default -> sticky(code) ? "the GPU context is lost: end this process" : "";
    };
  }

  /**
   * The codes whose description in cuda.h says that the process or the context has to go: contained
   * and uncontained faults of a kernel, from illegal addresses to failed launches.
   */
  static boolean sticky(int code) {
    return switch (code) {
      case 226, 700, 702, 710, 714, 715, 716, 717, 718, 719, 721, 810, 911 -> true;
      default -> false;
    };
  }
}
