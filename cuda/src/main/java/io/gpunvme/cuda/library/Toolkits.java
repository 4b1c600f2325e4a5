package io.gpunvme.cuda.library;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;

/** Where CUDA toolkits put their libraries. */
public final class Toolkits {
  private Toolkits() {}

  /**
   * The folders in the order of preference: of the toolkit that {@code CUDA_HOME} or {@code
   * CUDA_PATH} names, of {@code cuda}, then the last name, mostly the newest version, first.
   *
   * @param toolkits the folder that has {@code cuda}, {@code cuda-13.0} and so on
   */
  public static List<Path> libraries(Map<String, String> environment, Path toolkits) {
    List<Path> folders = new ArrayList<>();
    for (String variable : List.of("CUDA_HOME", "CUDA_PATH")) {
      String toolkit = environment.get(variable);
      if (toolkit != null && !toolkit.isEmpty()) {
        folders.add(Path.of(toolkit, "lib64"));
      }
    }
    folders.add(toolkits.resolve("cuda").resolve("lib64"));
    list(toolkits, "cuda-*").stream()
        .sorted(Comparator.reverseOrder())
        .map(toolkit -> toolkit.resolve("lib64"))
        .forEach(folders::add);
    return folders;
  }

  /** What is in a folder by names that fit a pattern; nothing if it is none. */
  public static List<Path> list(Path folder, String pattern) {
    List<Path> found = new ArrayList<>();
    if (Files.isDirectory(folder)) {
      try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, pattern)) {
        files.forEach(found::add);
      } catch (IOException e) {
        throw new UncheckedIOException("cannot list " + folder, e);
      }
    }
    return found;
  }
}
