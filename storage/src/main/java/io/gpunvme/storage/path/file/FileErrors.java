package io.gpunvme.storage.path.file;

import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import org.jspecify.annotations.Nullable;

/** Error numbers of the kernel as failures of a transfer. */
public final class FileErrors {
  private FileErrors() {}

  /** What kind of failure an error number is. */
  public static Kind kind(int errno) {
    return switch (errno) {
      case Errno.ENOSPC, Errno.EDQUOT, Errno.EFBIG -> Kind.NO_SPACE;
      case Errno.ENOENT, Errno.ENODEV, Errno.ENXIO -> Kind.GONE;
      case Errno.EACCES, Errno.EPERM, Errno.EROFS, Errno.EBADF -> Kind.PERMISSION;
      case Errno.EINVAL, Errno.EOPNOTSUPP, Errno.EISDIR -> Kind.UNSUPPORTED;
      case Errno.ECANCELED -> Kind.CANCELLED;
      default -> Kind.IO;
    };
  }

  private static String advice(Kind kind) {
    return switch (kind) {
      case NO_SPACE -> "; free some space, or raise the quota or limit";
      case IO -> "; look at the kernel's log (dmesg), and check the device";
      case PERMISSION -> "; check the file's mode, and how it was opened";
      default -> "";
    };
  }

  /**
   * A failure of a call about a range of a file.
   *
   * @param call e.g. {@code pread}
   */
  public static StorageException of(
      String source, long offset, long length, String call, int errno) {
    return of(source, offset, length, call, errno, null);
  }

  /** A failure of a call about a file as a whole. */
  public static StorageException of(String source, PosixException e) {
    return of(source, -1, -1, e.call(), e.errno(), e);
  }

  private static StorageException of(
      String source,
      long offset,
      long length,
      String call,
      int errno,
      @Nullable PosixException cause) {
    Kind kind = kind(errno);
    String what = "%s: %s (%s)".formatted(call, Errno.name(errno), Errno.text(errno));
    return new StorageException(kind, source, offset, length, what + advice(kind), cause);
  }
}
