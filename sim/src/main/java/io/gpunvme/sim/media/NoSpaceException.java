package io.gpunvme.sim.media;

import java.io.IOException;
import org.jspecify.annotations.Nullable;

/** There is no room for what is written: the file system, a quota, a limit or memory is full. */
public final class NoSpaceException extends IOException {
  private static final long serialVersionUID = 1;

  NoSpaceException(String message, @Nullable Throwable cause) {
    super(message, cause);
  }
}
