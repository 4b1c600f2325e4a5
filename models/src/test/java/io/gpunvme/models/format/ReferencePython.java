package io.gpunvme.models.format;

import io.gpunvme.testing.PipPackages;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/**
 * Runs our scripts that use the Python libraries of safetensors and ggml. The interpreter is {@code
 * -Dgpunvme.python}, or {@code GPUNVME_PYTHON}, or that of {@code scripts/test-python}, or {@code
 * python3}; tests skip with the reason where it lacks those libraries.
 */
final class ReferencePython {
  /** What the scripts exit with if a library is missing. */
  private static final int MISSING = 3;

  private static final int SECONDS = 100;

  private ReferencePython() {}

  /** Runs a script; returns what it printed. */
  static String run(String script, Object... arguments) throws IOException, InterruptedException {
    String python = interpreter();
    List<String> command = new ArrayList<>(List.of(python, script(script).toString()));
    for (Object argument : arguments) {
      command.add(argument.toString());
    }
    Path printed = Files.createTempFile("reference", ".txt");
    try {
      Process process;
      try {
        process =
            new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(printed.toFile())
                .start();
      } catch (IOException e) {
        Assumptions.abort("no " + python + " on this machine");
        throw e;
      }
      if (!process.waitFor(SECONDS, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        throw new AssertionError(command + " takes more than " + SECONDS + " seconds");
      }
      String output = Files.readString(printed, StandardCharsets.UTF_8);
      if (process.exitValue() == MISSING) {
        String reason = output.strip() + "; " + PipPackages.why("safetensors");
        System.out.println("SKIP " + script + ": " + reason);
        Assumptions.abort(reason);
      }
      if (process.exitValue() != 0) {
        throw new AssertionError(command + ": " + output);
      }
      return output;
    } finally {
      Files.delete(printed);
    }
  }

  private static String interpreter() {
    return Optional.ofNullable(System.getProperty("gpunvme.python"))
        .or(() -> Optional.ofNullable(System.getenv("GPUNVME_PYTHON")))
        .or(() -> PipPackages.python().map(Path::toString))
        .orElse("python3");
  }

  /** Of the repository; tests start in their module or there. */
  private static Path root() {
    Path here = Path.of("").toAbsolutePath();
    return Files.isDirectory(here.resolve("models")) ? here : here.getParent();
  }

  private static Path script(String name) {
    return root().resolve("models/src/test/python").resolve(name);
  }
}
