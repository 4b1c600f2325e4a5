package io.gpunvme.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Optional;

/** What {@code scripts/test-python} has installed for tests; without it, those are skipped. */
public final class PipPackages {
  private static final String SCRIPT = "scripts/test-python";

  private PipPackages() {}

  /** The interpreter that has them. */
  public static Optional<Path> python() {
    return environment().map(e -> e.resolve("bin/python")).filter(Files::isExecutable);
  }

  /** The folder of NVIDIA's packages, laid out as a CUDA toolkit. */
  public static Optional<Path> toolkit() {
    return environment().flatMap(e -> child(e.resolve("lib"), "python3*")).flatMap(PipPackages::cu);
  }

  private static Optional<Path> cu(Path python) {
    return child(python.resolve("site-packages/nvidia"), "cu[0-9]*");
  }

  /** Why a package is not there, for the message of a test that is skipped. */
  public static String why(String name) {
    Optional<Path> missing = environment().map(e -> e.resolve("missing")).filter(Files::exists);
    if (missing.isPresent()) {
      try {
        for (String line : Files.readAllLines(missing.get())) {
          if (line.startsWith(name + ": ")) {
            return SCRIPT + " could not install " + line;
          }
        }
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
    return SCRIPT + " installs " + name;
  }

  private static Optional<Path> environment() {
    return root().map(root -> root.resolve("build/python")).filter(Files::isDirectory);
  }

  /** Of the repository; tests start in their module or there, and elsewhere without it. */
  private static Optional<Path> root() {
    Path here = Path.of("").toAbsolutePath();
    return Optional.of(here)
        .filter(PipPackages::isRoot)
        .or(() -> Optional.ofNullable(here.getParent()).filter(PipPackages::isRoot));
  }

  private static boolean isRoot(Path folder) {
    return Files.exists(folder.resolve(SCRIPT));
  }

  private static Optional<Path> child(Path folder, String pattern) {
    if (!Files.isDirectory(folder)) {
      return Optional.empty();
    }
    try (DirectoryStream<Path> found = Files.newDirectoryStream(folder, pattern)) {
      for (Path path : found) {
        return Optional.of(path);
      }
      return Optional.empty();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
