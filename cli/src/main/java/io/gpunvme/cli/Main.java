package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Terminal;
import io.gpunvme.nvme.driver.ShutdownGuard;
import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** The entry point of the command line. */
public final class Main {
  private static final int BUFFER_BYTES = 1 << 16;

  private Main() {}

  /** Runs one command and exits with its code. */
  public static void main(String[] args) {
    RememberingOutput output = new RememberingOutput(new FileOutputStream(FileDescriptor.out));
    OutputStreams streams =
        new OutputStreams(
            stream(output, false),
            stream(new FileOutputStream(FileDescriptor.err), true),
            Terminal::errorColumns,
            Terminal::outputColumns);
    // Before the command: both clean up when the process is told to end.
    Ending.install(streams);
    ShutdownGuard.install();
    int code = CommandLineTool.run(streams, args);
    Ending.over();
    System.exit(streams.out().checkError() ? unwritten(streams, output) : code);
  }

  /** Says why, but not to who left a pipe early: {@code gpunvme list | head}. */
  private static int unwritten(OutputStreams streams, RememberingOutput output) {
    String why = output.failure();
    if (!why.isEmpty() && !why.contains("Broken pipe")) {
      streams.err().println("gpunvme: standard output: " + why);
    }
    return ExitCode.FAILURE;
  }

  /** UTF-8 whatever the locale: names and arrows are the same everywhere. */
  private static PrintStream stream(OutputStream to, boolean flush) {
    return new PrintStream(
        new BufferedOutputStream(to, BUFFER_BYTES), flush, StandardCharsets.UTF_8);
  }
}
