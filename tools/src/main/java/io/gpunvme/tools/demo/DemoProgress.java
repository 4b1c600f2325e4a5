package io.gpunvme.tools.demo;

import io.gpunvme.gpu.transfer.TransferListener;

/**
 * What transfers of a demo tell its listener.
 *
 * @param stoppable whether the listener may cancel them
 */
record DemoProgress(DemoListener listener, boolean stoppable) implements TransferListener {
  DemoProgress(DemoListener listener) {
    this(listener, true);
  }

  @Override
  public void moved(long bytes) {
    listener.moved(bytes);
  }

  @Override
  public boolean isCancelled() {
    return stoppable && listener.isCancelled();
  }
}
