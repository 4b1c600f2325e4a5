package io.gpunvme.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Assumptions;

/** Programs of other people that some tests compare with; without them, those are skipped. */
final class Programs {
  private static final String[] MORE_FOLDERS = {"/usr/sbin", "/sbin"};

  private Programs() {}

  /** Skips the test, and says so, unless these programs are there. */
  static void need(String debianPackage, String... programs) {
    for (String program : programs) {
      if (find(program) == null) {
        String why = program + " is missing: sudo apt-get install " + debianPackage;
        System.out.println("SKIP " + why);
        Assumptions.abort(why);
      }
    }
  }

  private static Path find(String program) {
    List<String> folders = new ArrayList<>(List.of(System.getenv("PATH").split(":")));
    folders.addAll(Arrays.asList(MORE_FOLDERS));
    return folders.stream()
        .map(folder -> Path.of(folder, program))
        .filter(Files::isExecutable)
        .findFirst()
        .orElse(null);
  }

  /** Runs one, which must succeed. */
  static void run(Object... command) throws IOException {
    List<String> words = new ArrayList<>(Arrays.stream(command).map(Object::toString).toList());
    words.set(0, String.valueOf(find(words.getFirst())));
    Path log = Files.createTempFile("program", ".log");
    try {
      ProcessBuilder builder = new ProcessBuilder(words).redirectErrorStream(true);
      builder.environment().put("LC_ALL", "C.UTF-8");
      Process process = builder.redirectOutput(log.toFile()).start();
      process.getOutputStream().close();
      if (process.waitFor() != 0) {
        throw new AssertionError(words + ": " + Files.readString(log));
      }
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    } finally {
      Files.delete(log);
    }
  }
}
