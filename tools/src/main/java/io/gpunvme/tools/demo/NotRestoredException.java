package io.gpunvme.tools.demo;

import java.io.IOException;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/** Blocks of somebody's SSD could not be put back; a file still has them. */
public final class NotRestoredException extends IOException {
  private static final long serialVersionUID = 1;

  private final transient Path copy;

  NotRestoredException(String what, Path copy, @Nullable Throwable cause) {
    super(what, cause);
    this.copy = copy;
  }

  /** The file that has them, from its first byte on. */
  public Path copy() {
    return copy;
  }
}
