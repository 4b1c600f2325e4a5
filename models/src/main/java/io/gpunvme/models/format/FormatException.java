package io.gpunvme.models.format;

import io.gpunvme.base.Printable;
import java.util.Locale;

/** A file of weights cannot be used: which one, where in it, the problem, and what to do next. */
public final class FormatException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The kind of problem. */
  public enum Kind {
    /** It is not a file of this format. */
    NOT_THIS_FORMAT,
    /** It is shorter than its header says: an incomplete copy or download. */
    TRUNCATED,
    /** It contradicts itself or the format. */
    CORRUPT,
    /** Legal, or once legal, but not supported: a version, a removed type, a limit of ours. */
    UNSUPPORTED,
    /** Another file that belongs to it is missing. */
    MISSING
  }

  /** The offset if none is known. */
  public static final long NO_OFFSET = -1;

  private final Kind kind;
  private final String file;
  private final long offset;
  private final String tensor;

  private FormatException(Kind kind, String file, long offset, String tensor, String what) {
    super(message(kind, file, offset, tensor, what));
    this.kind = kind;
    this.file = file;
    this.offset = offset;
    this.tensor = tensor;
  }

  private static String message(Kind kind, String file, long offset, String tensor, String what) {
    String place = offset == NO_OFFSET ? "" : " at byte " + offset;
    String of = tensor.isEmpty() ? "" : ", tensor '" + Printable.quote(tensor) + "'";
    String name = kind.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    return "%s%s%s: %s: %s".formatted(file, place, of, name, what);
  }

  /** A problem of the whole file. */
  public static FormatException of(Kind kind, String file, String what) {
    return new FormatException(kind, file, NO_OFFSET, "", what);
  }

  /** A problem at an offset in the file. */
  public static FormatException at(Kind kind, String file, long offset, String what) {
    return new FormatException(kind, file, offset, "", what);
  }

  /** A problem of a tensor. */
  public static FormatException tensor(Kind kind, String file, String tensor, String what) {
    return new FormatException(kind, file, NO_OFFSET, tensor, what);
  }

  /** The kind of problem. */
  public Kind kind() {
    return kind;
  }

  /** The file. */
  public String file() {
    return file;
  }

  /** The offset in the file, in bytes; {@link #NO_OFFSET} if there is none. */
  public long offset() {
    return offset;
  }

  /** The tensor; empty if it concerns none. */
  public String tensor() {
    return tensor;
  }
}
