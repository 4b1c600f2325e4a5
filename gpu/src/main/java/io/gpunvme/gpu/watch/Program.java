package io.gpunvme.gpu.watch;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** What this process is to be called. Its arguments are nobody's business but its own. */
final class Program {
  /** Never changes. */
  static final String NAME = name(System.getProperty("sun.java.command", ""));

  private static final String COMMAND = "io.gpunvme.cli.Main";

  private Program() {}

  /**
   * @param command the class or file that Java was started with, and its arguments; empty if a
   *     program has Java as a library
   */
  static String name(String command) {
    String[] words = command.strip().split("\\s+", -1);
    String started = words[0].substring(words[0].lastIndexOf('/') + 1);
    if (started.equals(COMMAND)) {
      boolean named = words.length > 1 && words[1].matches("[a-z][a-z0-9-]*");
      return named ? "gpunvme " + words[1] : "gpunvme";
    }
    if (started.isEmpty()) {
      return ofProcess();
    }
    return started.endsWith(".jar") ? started : started.substring(started.lastIndexOf('.') + 1);
  }

  private static String ofProcess() {
    try {
      return Files.readString(Path.of("/proc/self/comm")).strip();
    } catch (IOException e) {
      return "";
    }
  }
}
