package io.gpunvme.storage.path.cufile;

import io.gpunvme.cuda.CudaException;
import io.gpunvme.cuda.cufile.CuFileError;
import io.gpunvme.cuda.cufile.CuFileException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;

/** What failures of cuFile, of the kernel and of CUDA are to those who transfer. */
final class CuFileFailures {
  // Numbers of Linux that Errno does not name.
  private static final int ENXIO = 6;
  private static final int EROFS = 30;
  private static final int ESTALE = 116;
  private static final int EDQUOT = 122;

  private CuFileFailures() {}

  /** The failure as one of storage; what the caller did wrong stays itself. */
  static RuntimeException of(RuntimeException e, String source, long offset, long length) {
    Kind kind;
    switch (e) {
      case PosixException posix -> kind = kind(posix.errno());
      case CuFileException cuFile -> kind = kind(cuFile);
      case CudaException cuda -> kind = kindOfCuda(cuda.code());
      default -> {
        return e;
      }
    }
    return new StorageException(kind, source, offset, length, String.valueOf(e.getMessage()), e);
  }

  /** Whether the same call may work a little later. */
  static boolean passing(RuntimeException e) {
    return switch (e) {
      case PosixException posix -> posix.errno() == Errno.EINTR || posix.errno() == Errno.EAGAIN;
      case CuFileException cuFile -> cuFile.error().filter(CuFileError::passing).isPresent();
      default -> false;
    };
  }

  private static Kind kind(int errno) {
    return switch (errno) {
      case Errno.ENOSPC, EDQUOT, Errno.EFBIG -> Kind.NO_SPACE;
      case Errno.ENODEV, ENXIO, Errno.ENOENT, ESTALE -> Kind.GONE;
      case Errno.EACCES, Errno.EPERM, EROFS -> Kind.PERMISSION;
      case Errno.EOPNOTSUPP, Errno.EINVAL -> Kind.UNSUPPORTED;
      default -> Kind.IO;
    };
  }

  private static Kind kindOfCuda(int result) {
    return result == CudaException.OUT_OF_MEMORY ? Kind.ACCELERATOR_MEMORY : Kind.ACCELERATOR;
  }

  private static Kind kind(CuFileException e) {
    return switch (e.error().orElse(CuFileError.INTERNAL_ERROR)) {
      case CUDA_DRIVER_ERROR -> kindOfCuda(e.cudaResult());
      case CUDA_POINTER_INVALID,
          CUDA_MEMORY_TYPE_INVALID,
          CUDA_POINTER_RANGE_ERROR,
          CUDA_CONTEXT_MISMATCH,
          INVALID_MAPPING_RANGE,
          DEVICE_NOT_FOUND,
          INVALID_CONTEXT_ERROR ->
          Kind.ACCELERATOR;
      case INVALID_MAPPING_SIZE, GPU_MEMORY_PINNING_FAILED, NOMEM_ERROR -> Kind.ACCELERATOR_MEMORY;
      case PERMISSION_DENIED -> Kind.PERMISSION;
      case PLATFORM_NOT_SUPPORTED,
          IO_NOT_SUPPORTED,
          DEVICE_NOT_SUPPORTED,
          INVALID_FILE_TYPE,
          INVALID_FILE_OPEN_FLAG,
          DIO_NOT_SET,
          HANDLE_NOT_REGISTERED,
          IO_DISABLED,
          ASYNC_NOT_SUPPORTED,
          BATCH_NOCOMPAT_ERROR,
          DRIVER_NOT_INITIALIZED,
          DRIVER_VERSION_MISMATCH,
          DRIVER_VERSION_READ_ERROR ->
          Kind.UNSUPPORTED;
      default -> Kind.IO;
    };
  }
}
