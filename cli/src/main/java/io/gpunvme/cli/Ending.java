package io.gpunvme.cli;

import io.gpunvme.cli.output.OutputStreams;
import io.gpunvme.nvme.driver.ShutdownGuard;
import java.io.PrintStream;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Supplier;

/**
 * What happens when the process is told to end (Ctrl-C, SIGTERM) before its command is over: its
 * leftovers are deleted, and one line on the error stream says in which state it leaves things.
 * Standard output stays as it is. Safe for all threads.
 */
final class Ending {
  private enum Stage {
    RUNNING,
    INTERRUPTED,
    OVER
  }

  private static final AtomicReference<Stage> STAGE = new AtomicReference<>(Stage.RUNNING);
  private static volatile Supplier<String> state = () -> "";

  private Ending() {}

  /** Installs the shutdown hook; to be called once. */
  static void install(OutputStreams streams) {
    Runtime.getRuntime().addShutdownHook(new Thread(() -> end(streams), "gpunvme-ending"));
  }

  private static void end(OutputStreams streams) {
    begin();
    // The command puts back what it has changed, from files that are deleted afterwards.
    ShutdownGuard.awaitDelays();
    boolean deleted = Leftovers.deleteAll();
    if (!begun()) {
      return;
    }
    String left = state.get();
    if (left.isEmpty() && deleted) {
      left = "unfinished and temporary files are deleted";
    }
    PrintStream err = streams.err();
    if (streams.columns().getAsInt() > 0) {
      err.println(); // A terminal shows ^C, and perhaps a bar, in this line.
    }
    err.println("gpunvme: interrupted" + (left.isEmpty() ? "" : "; " + left));
  }

  /**
   * The process is told to end. Whoever cancels the command for this says so first: the command may
   * return, and be over, before the shutdown hook of this class runs.
   */
  static void begin() {
    STAGE.compareAndSet(Stage.RUNNING, Stage.INTERRUPTED);
  }

  /** Whether the command is interrupted. If so, that is the reason for failures. */
  static boolean begun() {
    return STAGE.get() == Stage.INTERRUPTED;
  }

  /** What is left of the command if it is interrupted from now on; empty if nothing is. */
  static void leaves(String what) {
    leaves(() -> what);
  }

  /** The same, found out at the end. */
  static void leaves(Supplier<String> what) {
    state = what;
  }

  /** The command is over: what comes is no interruption, but one that has begun stays one. */
  static void over() {
    STAGE.compareAndSet(Stage.RUNNING, Stage.OVER);
  }
}
