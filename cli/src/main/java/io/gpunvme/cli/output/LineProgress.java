package io.gpunvme.cli.output;

import java.io.PrintStream;
import java.util.function.LongSupplier;

/** A line now and then, for logs of commands that take minutes: the task, and how much is done. */
final class LineProgress implements Progress {
  private static final long EVERY_NANOS = 30_000_000_000L;

  private final PrintStream err;
  private final LongSupplier clock;
  private String task = "";
  private long amount;
  private long moved;
  private long said;

  /**
   * @param clock as {@link System#nanoTime}
   */
  LineProgress(PrintStream err, LongSupplier clock) {
    this.err = err;
    this.clock = clock;
    said = clock.getAsLong();
  }

  @Override
  public synchronized void begin(String newTask, long newAmount, Unit unit) {
    task = newTask;
    amount = newAmount;
    moved = 0;
    say();
  }

  @Override
  public synchronized void moved(long more) {
    moved += more;
    say();
  }

  private void say() {
    long now = clock.getAsLong();
    if (now - said >= EVERY_NANOS) {
      said = now;
      err.printf("%s: %d %%%n", task, amount == 0 ? 0 : Math.min(100, 100 * moved / amount));
    }
  }

  @Override
  public void close() {}
}
