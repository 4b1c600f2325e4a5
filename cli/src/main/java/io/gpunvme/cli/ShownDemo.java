package io.gpunvme.cli;

import io.gpunvme.cli.output.Progress;
import io.gpunvme.tools.demo.DemoListener;
import io.gpunvme.tools.demo.DemoPhase;
import java.util.function.BooleanSupplier;

/** Shows how a demo gets on, until it is told to end. */
record ShownDemo(Progress progress, BooleanSupplier cancelled) implements DemoListener {
  @Override
  public void phase(DemoPhase phase, long bytes) {
    String task =
        switch (phase) {
          case SAMPLE -> "make file";
          case PUT -> "to the SSD";
          case GET -> "to the accelerator";
          case CHECK -> "check";
          case COMPARE -> "by the CPU";
          case SAVE -> "keep what is there";
          case RESTORE -> "put it back";
        };
    progress.begin(task, bytes);
  }

  @Override
  public void moved(long bytes) {
    progress.moved(bytes);
  }

  @Override
  public boolean isCancelled() {
    return cancelled.getAsBoolean();
  }
}
