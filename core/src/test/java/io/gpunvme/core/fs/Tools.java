package io.gpunvme.core.fs;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Assumptions;
import org.opentest4j.TestAbortedException;

/** Programs of other people that make and read file systems. A test without them is skipped. */
public final class Tools {
  private static final String[] MORE_FOLDERS = {"/usr/sbin", "/sbin"};

  private Tools() {}

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
    folders.addAll(Arrays.asList(MORE_FOLDERS));
    return folders.stream()
        .map(folder -> Path.of(folder, program))
        .filter(Files::isExecutable)
        .findFirst()
        .orElse(null);
  }

  /** Runs a program, which must succeed; returns what it wrote. */
  public static byte[] run(Object... command) {
    return run(new byte[0], command);
  }

  /** Runs a program with something on standard input. */
  public static byte[] run(byte[] input, Object... command) {
    List<String> words = new ArrayList<>(Arrays.stream(command).map(Object::toString).toList());
    Path program = find(words.getFirst());
    if (program == null) {
      throw new TestAbortedException(words.getFirst() + " is missing");
    }
    words.set(0, program.toString());
    try {
      Path log = Files.createTempFile("tool", ".log");
      ProcessBuilder builder = new ProcessBuilder(words).redirectError(log.toFile());
      builder.environment().put("LC_ALL", "C.UTF-8");
      Process process = builder.start();
      byte[] output;
      try (OutputStream in = process.getOutputStream()) {
        in.write(input);
      } catch (IOException e) {
        // It ended before it had read everything; its code says why.
      }
      try (InputStream out = process.getInputStream()) {
        output = out.readAllBytes();
      }
      int code = process.waitFor();
      String said = Files.readString(log, StandardCharsets.ISO_8859_1);
      Files.delete(log);
      if (code != 0) {
        throw new AssertionError(words + " ended with code " + code + ": " + said);
      }
      return output;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
