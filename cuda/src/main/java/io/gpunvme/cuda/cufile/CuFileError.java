package io.gpunvme.cuda.cufile;

import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Codes of cuFile ({@code CUfileOpError}); some numbers between them are not used. */
public enum CuFileError {
  DRIVER_NOT_INITIALIZED(
      5001,
      "the driver is not open",
      "load the kernel module nvidia-fs, or set properties.allow_compat_mode to true in"
          + " cufile.json"),
  DRIVER_INVALID_PROPS(5002, "a property is not valid", "correct cufile.json"),
  DRIVER_UNSUPPORTED_LIMIT(
      5003, "a property is out of its range", "correct the value, or cufile.json"),
  DRIVER_VERSION_MISMATCH(
      5004,
      "the kernel module nvidia-fs is of another version",
      "install nvidia-fs and libcufile of the same release"),
  DRIVER_VERSION_READ_ERROR(
      5005,
      "the version of nvidia-fs cannot be read",
      "check that nvidia-fs is loaded (cat /proc/driver/nvidia-fs/version)"),
  DRIVER_CLOSING(5006, "the driver is being closed", "close it when no transfer runs"),
  PLATFORM_NOT_SUPPORTED(5007, "this platform is not supported", "use another path (pinned)"),
  IO_NOT_SUPPORTED(
      5008,
      "this file is not supported",
      "put the file on ext4 or XFS, or use another path (pinned)"),
  DEVICE_NOT_SUPPORTED(5009, "this GPU is not supported", "use another path (pinned)"),
  NVFS_DRIVER_ERROR(5010, "nvidia-fs failed", "look into the kernel log (dmesg)"),
  CUDA_DRIVER_ERROR(5011, "the CUDA driver failed", ""),
  CUDA_POINTER_INVALID(5012, "this is not an address that CUDA knows", ""),
  CUDA_MEMORY_TYPE_INVALID(5013, "memory of this type is not supported", ""),
  CUDA_POINTER_RANGE_ERROR(5014, "the range is not inside the memory", ""),
  CUDA_CONTEXT_MISMATCH(5015, "the memory belongs to another CUDA context", ""),
  INVALID_MAPPING_SIZE(
      5016,
      "more memory than may be pinned",
      "register less, or raise properties.max_device_pinned_mem_size_kb in cufile.json"),
  INVALID_MAPPING_RANGE(5017, "the range is not inside the registered memory", ""),
  INVALID_FILE_TYPE(5018, "files of this type are not supported", "use a regular file"),
  INVALID_FILE_OPEN_FLAG(
      5019, "the file is open with flags that are not supported", "use another path (pinned)"),
  DIO_NOT_SET(
      5020,
      "the file is not open with O_DIRECT",
      "open it with O_DIRECT, or update libcufile (1.7 and newer need none)"),
  INVALID_VALUE(5022, "an argument is not valid", ""),
  MEMORY_ALREADY_REGISTERED(5023, "the memory is registered already", ""),
  MEMORY_NOT_REGISTERED(5024, "the memory is not registered", ""),
  PERMISSION_DENIED(
      5025,
      "no permission for the driver or the file",
      "check the permissions of the file and of /dev/nvidia-fs*"),
  DRIVER_ALREADY_OPEN(
      5026, "the driver is open already", "set parameters before the first file is opened"),
  HANDLE_NOT_REGISTERED(
      5027,
      "the file is not registered",
      "if registering it failed: udev has no record of its block device (/run/udev/data), or the"
          + " file system has none"),
  HANDLE_ALREADY_REGISTERED(5028, "the file descriptor is registered already", ""),
  DEVICE_NOT_FOUND(5029, "the GPU was not found", "check that nvidia-smi lists it"),
  INTERNAL_ERROR(5030, "internal error", "look into the log of cuFile"),
  GETNEWFD_FAILED(5031, "no new file descriptor", "raise the limit of open files (ulimit -n)"),
  NVFS_SETUP_ERROR(5033, "nvidia-fs could not be set up", "look into the kernel log (dmesg)"),
  IO_DISABLED(5034, "cufile.json forbids it for this file", "look at denylist in cufile.json"),
  BATCH_SUBMIT_FAILED(5035, "the batch could not be submitted", ""),
  GPU_MEMORY_PINNING_FAILED(
      5036, "GPU memory could not be pinned", "register less, or look at BAR1 (nvidia-smi -q)"),
  BATCH_FULL(5037, "the batch is full", ""),
  ASYNC_NOT_SUPPORTED(
      5038,
      "calls in streams are not supported",
      "give cuFile a configuration file (CUFILE_ENV_PATH_JSON), or use calls without a stream"),
  INTERNAL_BATCH_SETUP_ERROR(5039, "internal error of batches", "try again"),
  INTERNAL_BATCH_SUBMIT_ERROR(5040, "internal error of batches", "try again"),
  INTERNAL_BATCH_GETSTATUS_ERROR(5041, "internal error of batches", "try again"),
  INTERNAL_BATCH_CANCEL_ERROR(5042, "internal error of batches", "try again"),
  NOMEM_ERROR(5043, "cuFile has no memory left", "try again, or with fewer threads"),
  IO_ERROR(5044, "the transfer failed", "look into the kernel log (dmesg)"),
  INTERNAL_BUF_REGISTER_ERROR(5045, "the buffer could not be registered", ""),
  HASH_OPR_ERROR(5046, "internal error of a table", ""),
  INVALID_CONTEXT_ERROR(5047, "the CUDA context is not valid", ""),
  NVFS_INTERNAL_DRIVER_ERROR(
      5048, "internal error of nvidia-fs", "look into the kernel log (dmesg)"),
  BATCH_NOCOMPAT_ERROR(
      5049,
      "batches need compatibility mode here",
      "set properties.allow_compat_mode to true in cufile.json"),
  IO_MAX_ERROR(5050, "an unknown error", "");

  private static final Map<Integer, CuFileError> BY_CODE =
      Stream.of(values()).collect(Collectors.toMap(CuFileError::code, Function.identity()));

  private final int code;
  private final String text;
  private final String advice;

  CuFileError(int code, String text, String advice) {
    this.code = code;
    this.text = text;
    this.advice = advice;
  }

  /** The one with this number, if this version knows it. */
  public static Optional<CuFileError> of(int code) {
    return Optional.ofNullable(BY_CODE.get(code));
  }

  /** Its number, from 5001. */
  public int code() {
    return code;
  }

  /** Its name in cuFile's reference, {@code CU_FILE_...}. */
  public String symbol() {
    return "CU_FILE_" + name();
  }

  /** What it means. */
  public String text() {
    return text;
  }

  /** What to do about it; empty where that depends on the call. */
  public String advice() {
    return advice;
  }

  /** Whether the same call may work a little later. */
  public boolean passing() {
    return switch (this) {
      case INTERNAL_BATCH_SETUP_ERROR,
          INTERNAL_BATCH_SUBMIT_ERROR,
          INTERNAL_BATCH_GETSTATUS_ERROR,
          INTERNAL_BATCH_CANCEL_ERROR,
          NOMEM_ERROR ->
          true;
      default -> false;
    };
  }
}
