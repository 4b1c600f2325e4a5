package io.gpunvme.cli;

import io.gpunvme.cli.output.Json;
import io.gpunvme.cli.output.OutputStreams;
import java.io.IOException;
import java.io.PrintStream;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import picocli.CommandLine.Option;

/** What every subcommand has. */
abstract class BaseCommand implements Callable<Integer> {
  private final OutputStreams streams;

  @Option(names = "--json", description = "Print one JSON object on standard output.")
  private boolean json;

  /**
   * Read from the arguments by {@link CommandFailures}, for arguments that cannot be parsed too.
   */
  @SuppressWarnings("UnusedVariable")
  @Option(names = "--debug", description = "Print the stack trace of a failure.")
  private boolean debug;

  @SuppressWarnings("UnusedVariable")
  @Option(
      names = {"-h", "--help"},
      usageHelp = true,
      description = "Print this help.")
  private boolean help;

  BaseCommand(OutputStreams streams) {
    this.streams = streams;
  }

  /** Does the work and returns the exit code. */
  abstract int run() throws IOException;

  @Override
  public final Integer call() throws IOException {
    return run();
  }

  final OutputStreams streams() {
    return streams;
  }

  final PrintStream out() {
    return streams.out();
  }

  final boolean json() {
    return json;
  }

  /** Prints the result in the form that was asked for. */
  final void print(Runnable text, Supplier<Map<String, Object>> object) {
    if (json) {
      Json.print(streams.out(), object.get());
    } else {
      text.run();
    }
  }
}
