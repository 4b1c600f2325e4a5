package io.gpunvme.sim;

/**
 * The receiver of an embedded controller's interrupts: a transport that signals an eventfd, a test,
 * or nothing.
 *
 * <p>Called by worker threads and by host threads inside register writes, with locks of the
 * controller held: return quickly, never call back into the controller.
 */
public interface InterruptSink {
  /** Ignores all interrupts: the host polls. */
  InterruptSink NONE =
      new InterruptSink() {
        @Override
        public void message(int vector, long address, int data) {}

        @Override
        public void level(boolean asserted) {}
      };

  /**
   * An MSI-X message is sent.
   *
   * @param vector index into the table
   * @param address the host's entry in the table for it
   * @param data likewise
   */
  void message(int vector, long address, int data);

  /** The level of the INTx line changed. */
  void level(boolean asserted);

  /** The function was reset: every vector is masked again. No lock is held. */
  default void reset() {}
}
