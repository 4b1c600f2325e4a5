package io.gpunvme.tools.report;

import java.io.IOException;
import java.nio.file.Path;

/** A file of results cannot be one; the message names the file, what is wrong, and where. */
public final class ResultFileException extends IOException {
  private static final long serialVersionUID = 1;

  private final String file;

  ResultFileException(Path file, String why) {
    super(file + ": " + why);
    this.file = file.toString();
  }

  /** Which file. */
  public String file() {
    return file;
  }
}
