package io.gpunvme.storage.fs;

import io.gpunvme.base.Printable;
import java.util.Locale;

/** A file system, or a part of it, cannot be read. */
public final class FileSystemException extends RuntimeException {
  private static final long serialVersionUID = 1;

  /** The kind of problem. */
  public enum Kind {
    /** There is no such name, or no known file system. */
    NOT_FOUND,
    /** A file where a folder is needed, or a folder where a file is needed. */
    WRONG_KIND,
    /** Links that name each other, or too many in a row. */
    LINKS,
    /** The structures contradict themselves or point outside the device. */
    CORRUPT,
    /** Legal, but not read here: encrypted, compressed, an unknown feature. */
    UNSUPPORTED,
    /** The journal has changes that are not in the file system yet. */
    JOURNAL
  }

  private final Kind kind;
  private final String where;

  /**
   * A failure. Control characters, which names may have, are escaped in the message.
   *
   * @param where the device and the part of it: a path, an inode, a block
   * @param what the problem, and what to do next if that is known
   */
  public FileSystemException(Kind kind, String where, String what) {
    super("%s: %s: %s".formatted(Printable.of(where), name(kind), Printable.of(what)));
    this.kind = kind;
    this.where = where;
  }

  private static String name(Kind kind) {
    return kind.name().toLowerCase(Locale.ROOT).replace('_', ' ');
  }

  /** The kind of problem. */
  public Kind kind() {
    return kind;
  }

  /** The device and the part of it. */
  public String where() {
    return where;
  }
}
