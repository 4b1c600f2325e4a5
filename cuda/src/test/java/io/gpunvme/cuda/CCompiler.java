package io.gpunvme.cuda;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.Assumptions;

/** gcc for tests: they are skipped where there is none. */
public final class CCompiler {
  private static final Path SOURCES = Path.of("src/test/c");
  private static final Map<String, Path> LIBRARIES = new ConcurrentHashMap<>();

  private CCompiler() {}

  /** What a program printed, or a compiler said, and its exit code. */
  public record Output(int code, String text) {}

  /** A shared library of {@code src/test/c}, compiled once for every list of options. */
  public static Path library(String source, String... options) {
    require();
    return LIBRARIES.computeIfAbsent(
        source + " " + String.join(" ", options),
        key -> {
          Path file = temporary(".so");
          compile(SOURCES.resolve(source), file, with(options, "-shared", "-fPIC", "-pthread"));
          return file;
        });
  }

  /** Compiles and runs a program. */
  public static String run(String program, String... options) {
    require();
    Path source = temporary(".c");
    Path file = temporary("");
    try {
      Files.writeString(source, program);
      compile(source, file, List.of(options));
      Output output = start(List.of(file.toString()));
      if (output.code() != 0) {
        throw new AssertionError("the program ended with " + output);
      }
      return output.text();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** Only checks a file of {@code src/test/c}. */
  public static Output check(String source, String... options) {
    require();
    List<String> command = new ArrayList<>(List.of("gcc", "-fsyntax-only"));
    command.addAll(List.of(options));
    command.add(SOURCES.resolve(source).toString());
    return start(command);
  }

  /** The folder with cuda.h; skips the test where there is none. */
  public static Path cudaInclude() {
    List<Path> toolkits = new ArrayList<>();
    String home = System.getenv("CUDA_HOME");
    if (home != null) {
      toolkits.add(Path.of(home));
    }
    try (Stream<Path> installed = Files.list(Path.of("/usr/local"))) {
      installed.filter(p -> p.getFileName().toString().startsWith("cuda")).forEach(toolkits::add);
    } catch (IOException e) {
      // No such folder: no toolkit.
    }
    toolkits.add(Path.of("/usr"));
    for (Path toolkit : toolkits) {
      if (Files.exists(toolkit.resolve("include/cuda.h"))) {
        return toolkit.resolve("include");
      }
    }
    return Assumptions.abort("no cuda.h in CUDA_HOME, /usr/local/cuda* or /usr/include");
  }

  private static void require() {
    try {
      start(List.of("gcc", "--version"));
    } catch (AssertionError e) {
      Assumptions.abort("gcc is not installed, the stand-in for the library cannot be built");
    }
  }

  private static void compile(Path source, Path target, List<String> options) {
    List<String> command = new ArrayList<>(List.of("gcc", "-O1", "-Wall", "-Wextra", "-Werror"));
    command.addAll(options);
    command.addAll(List.of("-o", target.toString(), source.toString()));
    Output output = start(command);
    if (output.code() != 0) {
      throw new AssertionError(command + " ended with " + output);
    }
  }

  private static List<String> with(String[] options, String... more) {
    List<String> all = new ArrayList<>(List.of(options));
    all.addAll(List.of(more));
    return all;
  }

  private static Path temporary(String suffix) {
    try {
      Path file = Files.createTempFile("gpunvme-cuda", suffix);
      file.toFile().deleteOnExit();
      return file;
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static Output start(List<String> command) {
    try {
      Process process = new ProcessBuilder(command).redirectErrorStream(true).start();
      process.getOutputStream().close();
      String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      return new Output(process.waitFor(), text);
    } catch (IOException e) {
      throw new AssertionError("cannot run " + command, e);
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
