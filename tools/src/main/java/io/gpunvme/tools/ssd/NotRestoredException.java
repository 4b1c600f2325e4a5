package io.gpunvme.tools.ssd;

import java.io.IOException;
import java.nio.file.Path;

/** Blocks of somebody's SSDs could not be put back; a file still has them. */
public final class NotRestoredException extends IOException {
  private static final long serialVersionUID = 1;

  private final transient Path copy;

  NotRestoredException(String what, Path copy, Throwable cause) {
    super(what, cause);
    this.copy = copy;
  }

  /** The file that has them, one run after the other. */
  public Path copy() {
    return copy;
  }
}
