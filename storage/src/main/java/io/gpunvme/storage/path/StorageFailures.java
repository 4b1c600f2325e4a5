package io.gpunvme.storage.path;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.DeviceGoneException;
import io.gpunvme.nvme.DmaMappingException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.spec.StatusCode;
import io.gpunvme.storage.path.StorageException.Kind;
import org.jspecify.annotations.Nullable;

/** Turns failures of lower layers into failures of storage. */
public final class StorageFailures {
  private StorageFailures() {}

  /**
   * A failure as a {@link StorageException} with its place. Mistakes of the caller, and storage
   * exceptions, are returned unchanged.
   */
  public static RuntimeException of(RuntimeException e, String source, long offset, long length) {
    Kind kind = kind(e);
    return kind == null
        ? e
        : new StorageException(kind, source, offset, length, String.valueOf(e.getMessage()), e);
  }

  private static @Nullable Kind kind(RuntimeException e) {
    return switch (e) {
      case InvalidRequestException _ -> null;
      case DeviceGoneException _ -> Kind.GONE;
      case ControllerFatalException _ -> Kind.GONE;
      case CommandAbortedException _ -> Kind.CANCELLED;
      case DmaMappingException _ -> Kind.UNSUPPORTED;
      case NvmeStatusException status -> kind(status.status());
      case NvmeException _ -> Kind.IO;
      case CudaException cuda ->
          cuda.code() == CudaException.OUT_OF_MEMORY ? Kind.ACCELERATOR_MEMORY : Kind.ACCELERATOR;
      // The stand-in's memory, or pinned memory.
      case PosixException posix when posix.errno() == Errno.ENOMEM -> Kind.ACCELERATOR_MEMORY;
      default -> null;
    };
  }

  private static Kind kind(int status) {
    StatusCode code = StatusCode.of(status);
    if (code == StatusCode.CAPACITY_EXCEEDED) {
      return Kind.NO_SPACE;
    }
    return code == StatusCode.NAMESPACE_WRITE_PROTECTED ? Kind.PERMISSION : Kind.IO;
  }
}
