package io.gpunvme.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * What to write to call this program once more: its name where a shell finds it, else its path.
 *
 * @param own for who has called it
 * @param root after {@code sudo}
 */
record ProgramName(String own, String root) {
  private static final String NAME = "gpunvme";

  /** Where every sudo looks. Not all look in /usr/local. */
  private static final String SUDO_PATH = "/usr/sbin:/usr/bin:/sbin:/bin";

  /** Whatever starts Java says by this how it was called. */
  private static final String PROPERTY = "gpunvme.program";

  static ProgramName here() {
    return of(System.getProperty(PROPERTY), System.getenv("PATH"));
  }

  /**
   * @param called as it was; null: nobody said it
   * @param path folders, separated by colons
   */
  static ProgramName of(@Nullable String called, @Nullable String path) {
    if (called == null || called.isEmpty()) {
      return new ProgramName(NAME, NAME);
    }
    Path file = Path.of(called);
    String own = called.contains("/") ? called : "./" + called;
    return new ProgramName(
        isFound(file, path == null ? "" : path) ? NAME : quoted(own),
        isFound(file, SUDO_PATH) ? NAME : quoted(file.toAbsolutePath().normalize().toString()));
  }

  /** The first of this name is the one that counts. */
  private static boolean isFound(Path file, String path) {
    for (String folder : path.split(":")) {
      Path one = Path.of(folder, NAME);
      if (Files.isExecutable(one)) {
        try {
          return Files.isSameFile(one, file);
        } catch (IOException e) {
          // One of them has gone: its path says at least where it was.
          return false;
        }
      }
    }
    return false;
  }

  /** For a shell. */
  static String quoted(String word) {
    return word.matches("[\\w./:@%+,=-]+") ? word : "'" + word.replace("'", "'\\''") + "'";
  }
}
