package io.gpunvme.cli;

import com.google.gson.Gson;
import io.gpunvme.cuda.Cuda;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Another process that runs commands one after the other, in another environment than this one's: a
 * line with the words as JSON comes in, a line with the result goes out.
 */
final class CliLines implements AutoCloseable {
  private static final Gson GSON = new Gson();

  private final Process process;
  private final BufferedReader answers;
  private final PrintStream lines;

  private CliLines(Process process) {
    this.process = process;
    answers = process.inputReader(StandardCharsets.UTF_8);
    lines = new PrintStream(process.getOutputStream(), true, StandardCharsets.UTF_8);
  }

  /** Starts one whose GPU is played by the CPU: it runs the device code with this library. */
  static CliLines withGpu(Path library) throws IOException {
    ProcessBuilder builder =
        new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-XX:+UseSerialGC",
            "-XX:TieredStopAtLevel=1",
            "--enable-native-access=ALL-UNNAMED",
            "-cp",
            System.getProperty("java.class.path"),
            CliLines.class.getName());
    builder.environment().put("GPUNVME_LIBCUDA", library.toString());
    return new CliLines(builder.redirectError(ProcessBuilder.Redirect.INHERIT).start());
  }

  Cli.Result run(List<String> words) throws IOException {
    lines.println(GSON.toJson(words));
    String answer = answers.readLine();
    if (answer == null) {
      throw new IOException("the process ended, at " + words);
    }
    String[] parts = GSON.fromJson(answer, String[].class);
    return new Cli.Result(
        Integer.parseInt(parts[0]), parts[1].getBytes(StandardCharsets.UTF_8), parts[2]);
  }

  /** Ends the process. */
  @Override
  public void close() {
    lines.close();
    process.destroy();
  }

  /** The other process. */
  public static void main(String[] none) throws IOException {
    PrintStream answers = System.out;
    // Before any command does: what is wrong with it belongs to no command.
    Cuda.load();
    BufferedReader in =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      Cli.Result result = Cli.run((Object[]) GSON.fromJson(line, String[].class));
      List<String> parts =
          new ArrayList<>(
              Arrays.asList(Integer.toString(result.code()), result.out(), result.err()));
      answers.println(GSON.toJson(parts));
    }
  }
}
