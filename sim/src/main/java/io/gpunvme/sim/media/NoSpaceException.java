package io.gpunvme.sim.media;

import java.io.IOException;

/** There is no room for what is written: the file system, a quota or a limit of files is full. */
public final class NoSpaceException extends IOException {
  private static final long serialVersionUID = 1;

  NoSpaceException(String message, Throwable cause) {
    super(message, cause);
  }
}
