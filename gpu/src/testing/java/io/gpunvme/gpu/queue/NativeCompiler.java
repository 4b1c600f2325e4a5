package io.gpunvme.gpu.queue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Assumptions;

/**
 * Compiles C++ against the device library with g++; tests skip with a reason where there is none.
 */
public final class NativeCompiler {
  /** The folder of {@code gpunvme} and {@code kernels}. */
  public static final Path CUDA = Path.of("../gpu/src/main/cuda").toAbsolutePath();

  private NativeCompiler() {}

  /** Compiles a text into {@code folder}; returns what came of it. */
  public static Path compile(Path folder, String name, String text, String... options)
      throws IOException, InterruptedException {
    Path source = folder.resolve(name + ".cpp");
    Path result = folder.resolve(name);
    Files.writeString(source, text);
    List<String> command =
        new ArrayList<>(
            List.of("g++", "-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"));
    command.addAll(List.of(options));
    command.addAll(List.of("-I", CUDA.toString(), "-o", result.toString(), source.toString()));
    run(command);
    return result;
  }

  /** Runs a program; returns what it printed. */
  public static String run(List<String> command) throws IOException, InterruptedException {
    Process process;
    try {
      process = new ProcessBuilder(command).redirectErrorStream(true).start();
    } catch (IOException e) {
      Assumptions.abort("no " + command.getFirst() + " on this machine");
      throw e;
    }
    String output = new String(process.getInputStream().readAllBytes());
    if (!process.waitFor(60, TimeUnit.SECONDS) || process.exitValue() != 0) {
      throw new AssertionError(command + ": " + output);
    }
    return output;
  }
}
