package io.gpunvme.storage.path;

import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** A transfer that failed: what, in which source, where, and what to do next. */
public final class StorageException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The kind of failure. */
  public enum Kind {
    /** The source ended before the range: it became shorter, or is shorter than it reports. */
    SHORT_READ,
    /** The device or the kernel failed (EIO, an NVMe status). */
    IO,
    /** No room for the data to write. */
    NO_SPACE,
    /** The device or file is not there any more. */
    GONE,
    /** The transfer was cancelled. */
    CANCELLED,
    /** The accelerator has not enough memory. */
    ACCELERATOR_MEMORY,
    /** The accelerator failed: a stream, a copy, a kernel. */
    ACCELERATOR,
    /** The process may not do that. */
    PERMISSION,
    /** This path, or this source, does not support that. */
    UNSUPPORTED
  }

  private final Kind kind;
  private final String source;
  private final long offset;
  private final long length;

  /**
   * A failure.
   *
   * @param source the file or device
   * @param offset first byte in the source that was being moved, or -1
   * @param length bytes that were being moved, or -1
   * @param what the failure, and what to do next if that is known
   */
  public StorageException(
      Kind kind, String source, long offset, long length, String what, @Nullable Throwable cause) {
    super(message(kind, source, offset, length, what), cause);
    this.kind = kind;
    this.source = source;
    this.offset = offset;
    this.length = length;
  }

  private static String message(Kind kind, String source, long offset, long length, String what) {
    String where = offset < 0 ? source : "%s, %d bytes at %d".formatted(source, length, offset);
    String name = kind.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    return "%s: %s: %s".formatted(where, name, what);
  }

  /** The kind of failure. */
  public Kind kind() {
    return kind;
  }

  /** The file or device. */
  public String source() {
    return source;
  }

  /** First byte in the source that was being moved, or -1. */
  public long offset() {
    return offset;
  }

  /** Bytes that were being moved, or -1. */
  public long length() {
    return length;
  }
}
