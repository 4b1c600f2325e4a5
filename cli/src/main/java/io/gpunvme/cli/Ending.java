package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import java.io.PrintStream;

/**
 * What happens when the process is told to end (Ctrl-C, SIGTERM) before its command is over: its
 * leftovers are deleted, and one line on the error stream says in which state it leaves things.
 * Standard output stays as it is. Safe for all threads.
 */
final class Ending {
  private static volatile boolean begun;
  private static volatile boolean over;
  private static volatile String state = "";

  private Ending() {}

  /** Installs the shutdown hook; to be called once. */
  static void install(OutputStreams streams) {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> end(streams), "gpunvme-ending"));
  }

  private static void end(OutputStreams streams) {
    begun = true;
    boolean deleted = Leftovers.deleteAll();
    if (over) {
      return;
    }
    String left = state;
    if (left.isEmpty() && deleted) {
      left = "unfinished and temporary files are deleted";
    }
    PrintStream err = streams.err();
    if (streams.columns().getAsInt() > 0) {
      err.println(); // A terminal shows ^C, and perhaps a bar, in this line.
    }
    err.println("gpunvme: interrupted" + (left.isEmpty() ? "" : "; " + left));
  }

  /** Whether the process is ending. If so, that is the reason for failures. */
  static boolean begun() {
    return begun;
  }

  /** What is left of the command if it is interrupted from now on; empty if nothing is. */
  static void leaves(String what) {
    state = what;
  }

  /** The command is over: what comes is no interruption. */
  static void over() {
    over = true;
  }
}
