package io.gpunvme.tools.ssd;

import io.gpunvme.gpu.transfer.TransferListener;

/**
 * Told how borrowing blocks gets on. If it cancels, what is there is not kept any further, and
 * nothing is borrowed; putting back is never cancelled.
 */
public interface BorrowListener extends TransferListener {
  /** Ignores everything. */
  BorrowListener NONE =
      new BorrowListener() {
        @Override
        public void begin(Step step, long bytes) {}

        @Override
        public void moved(long bytes) {}
      };

  /** What is done with the blocks. */
  enum Step {
    /** They are read, and kept. */
    SAVE,
    /** They are written, and read once more. */
    PUT_BACK
  }

  /**
   * A step begins.
   *
   * @param bytes that will be moved
   */
  void begin(Step step, long bytes);
}
