package io.gpunvme.bench;

import io.gpunvme.bench.BindingsChild.MissingException;
import io.gpunvme.tools.bench.BenchException;
import io.gpunvme.tools.bench.BenchMachine;
import io.gpunvme.tools.bench.Measurement;
import io.gpunvme.tools.bench.MeasurementFile;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * How long a program takes from its start to its exit, as a user's shell sees it: the built
 * command, the first read of a Python program, and a Java virtual machine that does nothing. {@link
 * BindingsBenchOptions#USAGE} has the options, of which {@code --out}, {@code --capi}, {@code
 * --python} and {@code --package} are for it. To be run in the repository.
 */
public final class StartTime {
  private static final int WARMUPS = 2;
  private static final int SAMPLES = 15;
  private static final long FILE_BYTES = 1 << 20;
  private static final String BARE = "start.jvm";

  /** A program, by the name of its result. */
  private record Program(String id, List<String> command, Map<String, String> environment) {}

  private StartTime() {}

  /** See the class. Exit codes: 0 done, 1 a program failed, 2 usage. */
  public static void main(String[] args) throws IOException {
    BindingsBenchOptions options;
    try {
      options = BindingsBenchOptions.parse(List.of(args), System.getenv());
    } catch (IllegalArgumentException e) {
      System.err.println(e.getMessage() + "\n" + BindingsBenchOptions.USAGE);
      System.exit(2);
      return;
    }
    Path file = Path.of("gpunvme-first-read.bin").toAbsolutePath();
    try {
      PatternFile.at(file, FILE_BYTES);
      MeasurementFile out =
          MeasurementFile.beside(options.out(), BenchMachine.withoutGpu(), GpuBench.commit());
      for (Measurement m : measure(programs(new BindingsCommands(options), file))) {
        System.out.println(GpuBench.line(m));
        out.add(m);
      }
      System.out.println("wrote " + out.path());
    } catch (BenchException e) {
      System.err.println(e.getMessage());
      System.exit(1);
    } finally {
      Files.deleteIfExists(file);
    }
  }

  private static List<Program> programs(BindingsCommands commands, Path file) {
    String java = Path.of(System.getProperty("java.home"), "bin", "java").toString();
    List<Program> all = new ArrayList<>();
    all.add(new Program(BARE, List.of(java, "-XX:TieredStopAtLevel=1", "--version"), Map.of()));
    all.add(new Program("start.help", List.of("./gpunvme", "--help"), Map.of()));
    all.add(
        new Program(
            "start.identify", List.of("./gpunvme", "identify", "sim:size=64MiB"), Map.of()));
    try {
      all.add(new Program("start.python", commands.firstRead(file), commands.libraryEnvironment()));
    } catch (MissingException e) {
      System.out.println("not measured: start.python: " + e.getMessage());
    }
    return all;
  }

  /** The programs in turn, so that what else the machine does meets all of them. */
  private static List<Measurement> measure(List<Program> programs) throws IOException {
    double[][] samples = new double[programs.size()][SAMPLES];
    for (int round = -WARMUPS; round < SAMPLES; round++) {
      for (int p = 0; p < samples.length; p++) {
        double millis = millis(programs.get(p));
        if (round >= 0) {
          samples[p][round] = millis;
        }
      }
    }
    List<Measurement> results = new ArrayList<>();
    for (int p = 0; p < samples.length; p++) {
      Program program = programs.get(p);
      Map<String, Object> conditions = Map.of("command", name(program.command));
      Measurement one = new Measurement(program.id, "ms", samples[p], conditions, null, null);
      results.add(p == 0 ? one : one.besides("an empty Java virtual machine", bare(results)));
    }
    return results;
  }

  private static double bare(List<Measurement> results) {
    return results.getFirst().median();
  }

  /** Without the folders of this machine. */
  private static String name(List<String> command) {
    List<String> words = new ArrayList<>();
    for (String word : command) {
      words.add(word.startsWith("/") ? String.valueOf(Path.of(word).getFileName()) : word);
    }
    return words.contains("-c") ? words.getFirst() + " first_read.py" : String.join(" ", words);
  }

  private static double millis(Program program) throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(program.command)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.INHERIT);
    builder.environment().putAll(program.environment);
    long start = System.nanoTime();
    Process process = builder.start();
    try {
      if (process.waitFor() != 0) {
        throw new BenchException(name(program.command) + " ended with " + process.exitValue());
      }
    } catch (InterruptedException e) {
      process.destroy();
      throw (BenchException) new BenchException("interrupted").initCause(e);
    }
    return (System.nanoTime() - start) / 1e6;
  }
}
