package io.gpunvme.tools.demo;

import io.gpunvme.gpu.transfer.TransferListener;

/** What transfers of a demo tell its listener. */
record DemoProgress(DemoListener listener) implements TransferListener {
  @Override
  public void moved(long bytes) {
    listener.moved(bytes);
  }

  @Override
  public boolean isCancelled() {
    return listener.isCancelled();
  }
}
