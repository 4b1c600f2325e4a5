package io.gpunvme.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/**
 * Compiles C and C++ for tests, with warnings as errors; a test is skipped where its compiler is
 * missing. A text includes whatever files it is about. Safe for all threads.
 */
public enum NativeCompiler {
  C("gcc", ".c"),
  // Code for GPUs has pragmas that only nvcc knows.
  CPP("g++", ".cpp", "-std=c++17", "-Wno-unknown-pragmas");

  /** The key is all that a library is made from. */
  private static final Map<List<String>, Path> LIBRARIES = new ConcurrentHashMap<>();

  private final String program;
  private final String suffix;
  private final List<String> options;

  NativeCompiler(String program, String suffix, String... options) {
    this.program = program;
    this.suffix = suffix;
    this.options = List.of(options);
  }

  /** Compiles a text to the file {@code name} in {@code folder}, which is returned. */
  public Path compile(Path folder, String name, String text, String... more) {
    try {
      Path result = folder.resolve(name);
      compile(Files.writeString(folder.resolve(name + suffix), text), result, List.of(more));
      return result;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * A shared library, compiled once for a text and its options. It is there until the virtual
   * machine ends.
   *
   * @param name part of the name of the file
   */
  public Path library(String name, String text, String... more) {
    List<String> key = new ArrayList<>(List.of(program, name, text));
    key.addAll(List.of(more));
    return LIBRARIES.computeIfAbsent(
        key,
        _ ->
            temporarily(
                folder -> {
                  Path library = Files.createTempFile("gpunvme-" + name + "-", ".so");
                  library.toFile().deleteOnExit();
                  Path source = Files.writeString(folder.resolve("library" + suffix), text);
                  List<String> all = new ArrayList<>(List.of(more));
                  all.addAll(List.of("-shared", "-fPIC"));
                  compile(source, library, all);
                  return library;
                }));
  }

  /** Compiles and runs a program; returns what it printed. */
  public String run(String text, String... more) {
    return temporarily(folder -> Programs.text(List.of(0), compile(folder, "program", text, more)));
  }

  private void compile(Path source, Path result, List<String> more) {
    // Debian's packages have the names of the programs.
    Programs.need(program, program);
    List<Object> command = new ArrayList<>(List.of(program, "-Wall", "-Wextra", "-Werror"));
    command.addAll(options);
    command.addAll(more);
    command.addAll(List.of("-o", result, source));
    Programs.text(List.of(0), command.toArray());
  }

  private interface Use<T> {
    T of(Path folder) throws IOException;
  }

  /** Gives a folder for files only, which is gone afterwards. */
  private static <T> T temporarily(Use<T> use) {
    try {
      Path folder = Files.createTempDirectory("gpunvme-native");
      try {
        return use.of(folder);
      } finally {
        try (Stream<Path> files = Files.list(folder)) {
          for (Path file : files.toList()) {
            Files.delete(file);
          }
        }
        Files.delete(folder);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }
}
