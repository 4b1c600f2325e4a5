package io.gpunvme.capi;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaNotFoundException;
import io.gpunvme.ffi.AddressSpace;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.DirtyPagesException;
import io.gpunvme.gpu.queue.KernelHungException;
import io.gpunvme.gpu.queue.RowsFailedException;
import io.gpunvme.gpu.queue.StorageBusyException;
import io.gpunvme.models.format.FormatException;
import io.gpunvme.models.tensor.UnsupportedTypeException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.storage.StorageClosedException;
import io.gpunvme.storage.fs.FileSystemException;
import io.gpunvme.storage.layer.LayerException;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageFailures;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.NoSuchFileException;
import java.util.Arrays;
import java.util.NoSuchElementException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.RejectedExecutionException;

/** Codes of {@code enum gpunvme_status}, and what failures become. */
final class CapiStatus {
  static final int OK = 0;
  static final int PENDING = 1;
  static final int INVALID = -1;
  static final int NOT_FOUND = -2;
  static final int PERMISSION = -3;
  static final int IO = -4;
  static final int NO_SPACE = -5;
  static final int GONE = -6;
  static final int CANCELLED = -7;
  static final int MEMORY = -8;
  static final int ACCELERATOR = -9;
  static final int TIMEOUT = -10;
  static final int UNSUPPORTED = -11;
  static final int FORMAT = -12;
  static final int CLOSED = -13;
  static final int BUSY = -16;
  static final int INTERNAL = -99;

  private static final int ENOENT = 2;

  /** Of {@code struct failure}. */
  private static final long TEXT = 8;

  private static final long[] NO_MEMORY = words("out of memory of the virtual machine");

  private CapiStatus() {}

  /** Writes a failure down for C; returns its code. */
  static int fail(MemorySegment failure, Throwable thrown) {
    Throwable e = unwrap(thrown);
    int code = code(e);
    String message = e.getMessage();
    String text =
        code == INTERNAL ? "unexpected " + e : message == null ? e.getClass().getName() : message;
    failure.set(CTypes.INT, 0, errno(e));
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    long room = failure.byteSize() - TEXT - 1;
    int n = (int) Math.min(bytes.length, room);
    // Not in the middle of a character.
    while (n < bytes.length && n > 0 && (bytes[n] & 0xC0) == 0x80) {
      n--;
    }
    MemorySegment.copy(bytes, 0, failure, CTypes.BYTE, TEXT, n);
    failure.set(CTypes.BYTE, TEXT + n, (byte) 0);
    return code;
  }

  /**
   * The same where not even that could be said, for lack of memory; needs none.
   *
   * @param failure address of it
   */
  static int failWithoutMemory(long failure) {
    AddressSpace.setLong(failure, 0);
    for (int i = 0; i < NO_MEMORY.length; i++) {
      AddressSpace.setLong(failure + TEXT + (long) i * Long.BYTES, NO_MEMORY[i]);
    }
    return MEMORY;
  }

  private static long[] words(String text) {
    byte[] bytes =
        Arrays.copyOf(text.getBytes(StandardCharsets.UTF_8), (text.length() / 8 + 1) * 8);
    long[] words = new long[bytes.length / 8];
    ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN).asLongBuffer().get(words);
    return words;
  }

  private static Throwable unwrap(Throwable thrown) {
    Throwable e = thrown;
    while (e instanceof CompletionException && e.getCause() != null) {
      e = e.getCause();
    }
    return e;
  }

  private static int errno(Throwable thrown) {
    for (Throwable e = thrown; e != null; e = e.getCause()) {
      if (e instanceof PosixException posix) {
        return posix.errno();
      }
    }
    return 0;
  }

  private static int code(Throwable e) {
    return switch (e) {
      case ClosedHandleException _ -> CLOSED;
      case StorageClosedException _ -> CLOSED;
      case StorageBusyException _ -> BUSY;
      case KernelHungException _ -> GONE;
      case InvalidRequestException _ -> INVALID;
      case UnsupportedTypeException _ -> UNSUPPORTED;
      case StorageException storage when errno(storage) == ENOENT -> NOT_FOUND;
      case StorageException storage -> code(storage.kind());
      case NvmeTimeoutException _ -> TIMEOUT;
      case RowsFailedException rows -> ofDevice(rows.status());
      case DirtyPagesException dirty -> ofDevice(dirty.status());
      case LayerException layer -> code(layer);
      case FormatException format ->
          format.kind() == FormatException.Kind.MISSING ? NOT_FOUND : FORMAT;
      case FileSystemException fs ->
          fs.kind() == FileSystemException.Kind.NOT_FOUND ? NOT_FOUND : FORMAT;
      case NoSuchFileException _ -> NOT_FOUND;
      case NoSuchElementException _ -> NOT_FOUND;
      case AccessDeniedException _ -> PERMISSION;
      case CudaNotFoundException _ -> ACCELERATOR;
      case PosixException posix when posix.errno() == Errno.ENOMEM -> MEMORY;
      case PosixException _ -> IO;
      case java.io.IOException _ -> IO;
      case OutOfMemoryError _ -> MEMORY;
      // The system has no thread left.
      case RejectedExecutionException _ -> MEMORY;
      case RuntimeException other -> lower(other);
      default -> INTERNAL;
    };
  }

  /** What a device call ended with. */
  private static int ofDevice(int status) {
    return switch (status) {
      case DeviceStatus.ARGUMENT -> INVALID;
      case DeviceStatus.TIMEOUT -> TIMEOUT;
      case DeviceStatus.STOPPED -> CANCELLED;
      case DeviceStatus.BUSY -> BUSY;
      default -> IO;
    };
  }

  private static int code(LayerException layer) {
    return layer.reason() == LayerException.Reason.READ && layer.getCause() != null
        ? code(unwrap(layer.getCause()))
        : CANCELLED;
  }

  private static int lower(RuntimeException e) {
    return StorageFailures.of(e, "", -1, -1) instanceof StorageException storage
        ? code(storage.kind())
        : INTERNAL;
  }

  private static int code(StorageException.Kind kind) {
    return switch (kind) {
      case SHORT_READ, IO -> IO;
      case NO_SPACE -> NO_SPACE;
      case GONE -> GONE;
      case CANCELLED -> CANCELLED;
      case ACCELERATOR_MEMORY -> MEMORY;
      case ACCELERATOR -> ACCELERATOR;
      case PERMISSION -> PERMISSION;
      case UNSUPPORTED -> UNSUPPORTED;
    };
  }
}
