package io.gpunvme.tools.demo;

/** Told how a demo gets on. */
public interface DemoListener {
  /** Ignores everything. */
  DemoListener NONE =
      new DemoListener() {
        @Override
        public void phase(DemoPhase phase, long bytes) {}

        @Override
        public void moved(long bytes) {}
      };

  /**
   * A phase begins, or goes on after another: a file longer than the accelerator's buffer
   * alternates between GET and CHECK.
   *
   * @param bytes how many there are to move in this phase before the next call
   */
  void phase(DemoPhase phase, long bytes);

  /** Another {@code bytes} bytes of the phase are done; called by several threads. */
  void moved(long bytes);

  /** Whether to end early; asked now and then by several threads. What was there is put back. */
  default boolean isCancelled() {
    return false;
  }
}
