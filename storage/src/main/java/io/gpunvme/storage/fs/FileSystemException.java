package io.gpunvme.storage.fs;

import java.util.Locale;

/** Why a file system, or something in it, cannot be read. */
public final class FileSystemException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** What is in the way. */
  public enum Kind {
    /** There is no such name, or no file system that is known here. */
    NOT_FOUND,
    /** A file where a folder was wanted, or a folder where a file was. */
    WRONG_KIND,
    /** Links that name each other, or too many in a row. */
    LINKS,
    /** What is there contradicts itself or leaves the device. */
    CORRUPT,
    /** Legal, but not read here: encrypted, compressed, an unknown feature. */
    UNSUPPORTED,
    /** The journal holds changes that were not made yet. */
    JOURNAL
  }

  private final Kind kind;
  private final String where;

  /**
   * A failure.
   *
   * @param where device and what of it: a path, an inode, a block
   * @param what what is wrong, and what to do next if that is known
   */
  public FileSystemException(Kind kind, String where, String what) {
    super("%s: %s: %s".formatted(where, name(kind), what));
    this.kind = kind;
    this.where = where;
  }

  private static String name(Kind kind) {
    return kind.name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }

  /** What is in the way. */
  public Kind kind() {
    return kind;
  }

  /** Device and what of it. */
  public String where() {
    return where;
  }
}
