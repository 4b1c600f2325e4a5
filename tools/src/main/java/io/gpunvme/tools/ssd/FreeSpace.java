package io.gpunvme.tools.ssd;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Room for files, looked at before they are written. */
public final class FreeSpace {
  private FreeSpace() {}

  /**
   * Requires that a folder's file system has room for {@code bytes} more.
   *
   * @throws IOException if it has not
   */
  public static void require(Path folder, long bytes) throws IOException {
    long free = Files.getFileStore(folder).getUsableSpace();
    if (free < bytes) {
      throw new IOException(
          "%s has %d MiB free, %d MiB are needed".formatted(folder, free >> 20, bytes >> 20));
    }
  }
}
