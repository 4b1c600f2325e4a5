package io.gpunvme.core.fs.ext4;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/** Programs of others that make and read file systems: e2fsprogs, a shell, mount. */
final class Tools {
  private static final List<String> FOLDERS =
      List.of("/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin");

  private Tools() {}

  /** Skips the test where a program is missing. */
  static void require(String... names) {
    for (String name : names) {
      if (find(name) == null) {
        Assumptions.abort(name + " is not installed: sudo apt-get install e2fsprogs");
      }
    }
  }

  private static Path find(String name) {
    for (String folder : FOLDERS) {
      Path file = Path.of(folder, name);
      if (Files.isExecutable(file)) {
        return file;
      }
    }
    return null;
  }

  /** What a program prints; fails unless it ends with one of the codes. */
  static String run(List<Integer> codes, List<String> command) {
    try {
      List<String> found = new ArrayList<>(command);
      found.set(0, find(command.getFirst()).toString());
      Path output = Files.createTempFile("output", null);
      try {
        ProcessBuilder builder = new ProcessBuilder(found).redirectErrorStream(true);
        builder.environment().put("LC_ALL", "C.UTF-8");
        builder.environment().put("TZ", "UTC");
        builder.environment().put("DEBUGFS_PAGER", "/bin/cat");
        Process process = builder.redirectOutput(output.toFile()).start();
        process.getOutputStream().close();
        boolean ended = process.waitFor(300, TimeUnit.SECONDS);
        String text = new String(Files.readAllBytes(output), StandardCharsets.ISO_8859_1);
        if (!ended || !codes.contains(process.exitValue())) {
          process.destroyForcibly();
          throw new AssertionError(found + " failed: " + text);
        }
        return text;
      } finally {
        Files.delete(output);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  static String run(String... command) {
    return run(List.of(0), List.of(command));
  }

  /** Makes a file system with the options, which are apart by spaces, and what a folder has. */
  static void mke2fs(Path image, String size, String options, Path folder) {
    List<String> command = new ArrayList<>(List.of("mke2fs", "-q", "-F"));
    command.addAll(List.of(options.trim().split(" +")));
    if (folder != null) {
      command.addAll(List.of("-d", folder.toString()));
    }
    command.addAll(List.of(image.toString(), size));
    run(List.of(0), command);
  }

  /** What debugfs answers to requests, changing the image where they do. */
  static String debugfs(Path image, List<String> requests) {
    try {
      Path script = Files.createTempFile("requests", null);
      try {
        Files.write(script, requests, StandardCharsets.ISO_8859_1);
        return run("debugfs", "-w", "-f", script.toString(), image.toString());
      } finally {
        Files.delete(script);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  static String debugfs(Path image, String... requests) {
    return debugfs(image, List.of(requests));
  }
}
