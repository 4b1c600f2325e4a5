package io.gpunvme.testing;

import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static java.nio.file.StandardOpenOption.CREATE;
import static java.nio.file.StandardOpenOption.WRITE;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HexFormat;
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
   * A shared library, compiled once for a text, what that includes, and its options: other virtual
   * machines find it in {@code ~/.cache/gpunvme/native}, those of other builds, too.
   *
   * @param name part of the name of the file
   */
  public Path library(String name, String text, String... more) {
    List<String> key = new ArrayList<>(List.of(program, name, text));
    key.addAll(List.of(more));
    return LIBRARIES.computeIfAbsent(
        key, _ -> temporarily(folder -> kept(folder, name, text, List.of(more))));
  }

  private Path kept(Path folder, String name, String text, List<String> more) throws IOException {
    List<String> options = new ArrayList<>(more);
    options.addAll(List.of("-shared", "-fPIC"));
    Path source = Files.writeString(folder.resolve("library" + suffix), text);
    Path kept = cache().resolve("%s-%s.so".formatted(name, digest(source, options)));
    // Two locks of one virtual machine would be an error.
    synchronized (LIBRARIES) {
      try (FileChannel lock = FileChannel.open(Path.of(kept + ".lock"), CREATE, WRITE)) {
        lock.lock();
        if (Files.exists(kept)) {
          Files.setLastModifiedTime(kept, FileTime.from(Instant.now()));
        } else {
          forgetOld(kept.getParent());
          // Of its own: whoever has lost the lock to forgetOld writes to another file.
          Path next = Files.createTempFile(kept.getParent(), name, ".next");
          compile(source, next, options);
          Files.move(next, kept, ATOMIC_MOVE);
        }
      }
    }
    return kept;
  }

  private static Path cache() throws IOException {
    String given = System.getenv("XDG_CACHE_HOME");
    Path folder =
        given == null || given.isEmpty()
            ? Path.of(System.getProperty("user.home"), ".cache")
            : Path.of(given);
    return Files.createDirectories(folder.resolve("gpunvme/native"));
  }

  /** Of all that a library is made from: the compiler, its options, and every included file. */
  private String digest(Path source, List<String> options) {
    Programs.need(program, program);
    List<Object> command = new ArrayList<>(List.of(program));
    command.addAll(this.options);
    command.addAll(options);
    command.addAll(List.of("-E", "-P", source));
    try {
      MessageDigest digest = MessageDigest.getInstance("SHA-256");
      digest.update(Programs.run(program, "--version"));
      // Where included files lie is nothing of the library.
      List<String> told = options.stream().filter(option -> !option.startsWith("-I")).toList();
      digest.update(told.toString().getBytes(StandardCharsets.UTF_8));
      digest.update(Programs.run(command.toArray()));
      return HexFormat.of().formatHex(digest.digest(), 0, 16);
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }

  /** Deletes what nobody has asked for in a month. */
  private static void forgetOld(Path folder) throws IOException {
    Instant old = Instant.now().minus(30, ChronoUnit.DAYS);
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        if (Files.getLastModifiedTime(file).toInstant().isBefore(old)) {
          Files.deleteIfExists(file);
        }
      }
    }
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
