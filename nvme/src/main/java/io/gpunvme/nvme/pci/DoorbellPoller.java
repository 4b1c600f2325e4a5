package io.gpunvme.nvme.pci;

/**
 * Whoever polls the doorbells of a function, and may sleep while they are quiet. Safe for all
 * threads.
 */
public interface DoorbellPoller {
  /** A device, or one that wakes up by itself. */
  DoorbellPoller TIRELESS =
      new DoorbellPoller() {
        @Override
        public void rang() {
          // It has seen the doorbell, or will soon.
        }

        @Override
        public Runnable keepAwake() {
          return () -> {};
        }
      };

  /**
   * After a store to a submission queue's tail doorbell: wakes the poller if it sleeps. Does not
   * wait, and never throws: if the poller is gone, the registers show it.
   */
  void rang();

  /**
   * From now on somebody stores to doorbells and does not call {@link #rang}.
   *
   * @return cancels this; may be run more than once
   */
  Runnable keepAwake();
}
