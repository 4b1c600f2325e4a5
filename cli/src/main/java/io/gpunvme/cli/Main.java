package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.cli.output.Terminal;
import io.gpunvme.nvme.driver.ShutdownGuard;
import java.io.BufferedOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** The entry point of the command line. */
public final class Main {
  private static final int BUFFER_BYTES = 1 << 16;

  private Main() {}

  /** Runs one command and exits with its code. */
  public static void main(String[] args) {
    // Registered first: both clean up when the process is told to end.
    Leftovers.install();
    ShutdownGuard.install();
    OutputStreams streams =
        new OutputStreams(
            stream(FileDescriptor.out, false),
            stream(FileDescriptor.err, true),
            Terminal::errorColumns);
    int code = CommandLineTool.run(streams, args);
    streams.out().flush();
    System.exit(streams.out().checkError() ? ExitCode.FAILURE : code);
  }

  /** UTF-8 whatever the locale: names and arrows are the same everywhere. */
  private static PrintStream stream(FileDescriptor descriptor, boolean flush) {
    return new PrintStream(
        new BufferedOutputStream(new FileOutputStream(descriptor), BUFFER_BYTES),
        flush,
        StandardCharsets.UTF_8);
  }
}
