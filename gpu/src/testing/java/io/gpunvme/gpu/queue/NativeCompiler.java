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

  /**
   * Before the text of a kernel makes it a function that stands for thread {@code blockIdx.x}, set
   * by its caller.
   */
  public static final String KERNEL_SHIM =
      """
      struct Dim { unsigned x; };
      static thread_local Dim blockIdx, threadIdx;
      static const Dim blockDim = {1};
      #define __device__
      #define __global__
      """;

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
