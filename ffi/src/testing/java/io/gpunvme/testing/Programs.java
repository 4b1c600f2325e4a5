package io.gpunvme.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;
import org.opentest4j.TestAbortedException;

/** Programs of other people that tests compare with; without them, those are skipped. */
public final class Programs {
  /** Where root's programs are; not everybody's PATH has them. */
  private static final List<String> MORE_FOLDERS = List.of("/usr/local/sbin", "/usr/sbin", "/sbin");

  private static final Map<String, String> ENVIRONMENT =
      Map.of("LC_ALL", "C.UTF-8", "TZ", "UTC", "DEBUGFS_PAGER", "/bin/cat");

  /** None takes as long, however busy the machine is. */
  private static final long MOST_SECONDS = 300;

  private Programs() {}

  /** Skips the test, and says so, unless these programs are there. */
  public static void need(String debianPackage, String... programs) {
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
    folders.addAll(MORE_FOLDERS);
    return folders.stream()
        // A path that is absolute stays what it is.
        .map(folder -> Path.of(folder).resolve(program))
        .filter(Files::isExecutable)
        .findFirst()
        .orElse(null);
  }

  /** Runs a program, which must succeed; returns what it wrote to standard output. */
  public static byte[] run(Object... command) {
    return run(new byte[0], command);
  }

  /** Runs a program with something on standard input. */
  public static byte[] run(byte[] input, Object... command) {
    return run(input, false, List.of(0), command);
  }

  /** Runs a program that must end with one of the codes; returns all that it wrote, as Latin-1. */
  public static String text(List<Integer> codes, Object... command) {
    return new String(run(new byte[0], true, codes, command), StandardCharsets.ISO_8859_1);
  }

  private static byte[] run(
      byte[] input, boolean together, List<Integer> codes, Object... command) {
    List<String> words = new ArrayList<>(Arrays.stream(command).map(Object::toString).toList());
    Path program = find(words.getFirst());
    if (program == null) {
      throw new TestAbortedException(words.getFirst() + " is missing");
    }
    words.set(0, program.toString());
    try {
      List<Path> streams = new ArrayList<>();
      for (String name : List.of("in", "out", "err")) {
        streams.add(Files.createTempFile("program", name));
      }
      try {
        Files.write(streams.getFirst(), input);
        return run(words, together, codes, streams);
      } finally {
        for (Path stream : streams) {
          Files.delete(stream);
        }
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static byte[] run(
      List<String> words, boolean together, List<Integer> codes, List<Path> streams)
      throws IOException, InterruptedException {
    ProcessBuilder builder = new ProcessBuilder(words).redirectErrorStream(together);
    builder.environment().putAll(ENVIRONMENT);
    builder.redirectInput(streams.get(0).toFile()).redirectOutput(streams.get(1).toFile());
    if (!together) {
      builder.redirectError(streams.get(2).toFile());
    }
    Process process = builder.start();
    boolean ended = process.waitFor(MOST_SECONDS, TimeUnit.SECONDS);
    int code = ended ? process.exitValue() : process.destroyForcibly().waitFor();
    byte[] output = Files.readAllBytes(streams.get(1));
    if (!ended || !codes.contains(code)) {
      Path said = streams.get(together ? 1 : 2);
      throw new AssertionError(
          "%s %s: %s"
              .formatted(
                  words,
                  ended ? "ended with code " + code : "did not end",
                  Files.readString(said, StandardCharsets.ISO_8859_1)));
    }
    return output;
  }
}
