package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.pci.DoorbellPoller;

/** Counts what a poller of doorbells is told. One thread. */
final class ToldPoller implements DoorbellPoller {
  Runnable onRang = () -> {};
  int rang;
  int silent;

  @Override
  public void rang() {
    rang++;
    onRang.run();
  }

  @Override
  public Runnable keepAwake() {
    silent++;
    boolean[] over = new boolean[1];
    return () -> {
      silent -= over[0] ? 0 : 1;
      over[0] = true;
    };
  }
}
