package io.gpunvme.tools.demo;

import io.gpunvme.tools.ssd.BorrowListener;

/** What borrowing blocks for a demo tells its listener. */
record DemoBorrowing(DemoListener listener) implements BorrowListener {
  @Override
  public void begin(Step step, long bytes) {
    listener.phase(step == Step.SAVE ? DemoPhase.SAVE : DemoPhase.RESTORE, bytes);
  }

  @Override
  public void moved(long bytes) {
    listener.moved(bytes);
  }

  @Override
  public boolean isCancelled() {
    return listener.isCancelled();
  }
}
