package io.gpunvme.cli.output;

import java.io.PrintStream;
import me.tongfei.progressbar.DelegatingProgressBarConsumer;
import me.tongfei.progressbar.ProgressBar;
import me.tongfei.progressbar.ProgressBarBuilder;
import me.tongfei.progressbar.ProgressBarStyle;
import org.jspecify.annotations.Nullable;

/** A bar on a terminal, gone when the work is done. */
final class BarProgress implements Progress {
  private static final int UPDATE_MILLIS = 100;

  private final PrintStream err;
  private final int columns;
  private volatile @Nullable ProgressBar bar;

  BarProgress(PrintStream err, int columns) {
    this.err = err;
    this.columns = columns;
  }

  @Override
  public synchronized void begin(String task, long amount, Unit unit) {
    close();
    ProgressBarBuilder builder =
        new ProgressBarBuilder()
            .setTaskName(task)
            .setInitialMax(amount)
            .setUnit(unit.shown(), unit.size())
            .setUpdateIntervalMillis(UPDATE_MILLIS)
            .setStyle(ProgressBarStyle.ASCII)
            .setConsumer(new DelegatingProgressBarConsumer(this::draw, columns - 1));
    bar = (unit == Unit.BYTES ? builder.showSpeed() : builder).build();
  }

  private void draw(String line) {
    err.print("\r" + line);
    err.flush();
  }

  @Override
  public void moved(long amount) {
    ProgressBar current = bar;
    if (current != null) {
      current.stepBy(amount);
    }
  }

  @Override
  public synchronized void close() {
    ProgressBar current = bar;
    if (current != null) {
      bar = null;
      current.close();
      err.print("\r" + " ".repeat(columns - 1) + "\r");
      err.flush();
    }
  }
}
