package io.gpunvme.models.format;

import java.util.Locale;

/** A file of weights that cannot be used: which, where in it, what is wrong, and what to do. */
public final class FormatException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** What is wrong. */
  public enum Kind {
    /** It is not a file of this format. */
    NOT_THIS_FORMAT,
    /** It ends before what its header says: an incomplete copy or download. */
    TRUNCATED,
    /** It contradicts itself or the format. */
    CORRUPT,
    /** Legal, or once legal, but not read here: a version, a removed type, a limit of ours. */
    UNSUPPORTED,
    /** Another file that belongs to it is not there. */
    MISSING
  }

  /** Where no offset is known. */
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
    String of = tensor.isEmpty() ? "" : ", tensor '" + Quote.of(tensor) + "'";
    String name = kind.name().toLowerCase(Locale.ROOT).replace('_', ' ');
    return "%s%s%s: %s: %s".formatted(file, place, of, name, what);
  }

  /** Something of the whole file. */
  public static FormatException of(Kind kind, String file, String what) {
    return new FormatException(kind, file, NO_OFFSET, "", what);
  }

  /** Something at a place in the file. */
  public static FormatException at(Kind kind, String file, long offset, String what) {
    return new FormatException(kind, file, offset, "", what);
  }

  /** Something of a tensor. */
  public static FormatException tensor(Kind kind, String file, String tensor, String what) {
    return new FormatException(kind, file, NO_OFFSET, tensor, what);
  }

  /** What is wrong. */
  public Kind kind() {
    return kind;
  }

  /** Which file. */
  public String file() {
    return file;
  }

  /** Where in the file, in bytes; {@link #NO_OFFSET} if that says nothing. */
  public long offset() {
    return offset;
  }

  /** Which tensor; empty if it is none's. */
  public String tensor() {
    return tensor;
  }
}
