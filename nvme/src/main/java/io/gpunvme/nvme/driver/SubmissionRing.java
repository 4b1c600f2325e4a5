package io.gpunvme.nvme.driver;

import static io.gpunvme.nvme.driver.QueuePairLayout.getInt;
import static io.gpunvme.nvme.driver.QueuePairLayout.increment;
import static io.gpunvme.nvme.driver.QueuePairLayout.setInt;

import io.gpunvme.nvme.pci.DoorbellPoller;
import io.gpunvme.nvme.pci.Mmio;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;

/**
 * Where a {@link QueuePair} writes its next SQE, and what the controller was told of it. Never
 * full: there are fewer command slots than entries. Used by the one thread that drives the queue.
 */
final class SubmissionRing {
  private final MemorySegment state;
  private final MemorySegment doorbells;
  private final long doorbell;
  private final DoorbellPoller poller;
  private final int size;

  /**
   * @param state in the layout of {@link QueuePairLayout}
   * @param doorbell offset of the tail doorbell in {@code doorbells}
   * @param poller of the doorbells
   * @param size entries
   */
  SubmissionRing(
      MemorySegment state,
      MemorySegment doorbells,
      long doorbell,
      DoorbellPoller poller,
      int size) {
    this.state = state;
    this.doorbells = doorbells;
    this.doorbell = doorbell;
    this.poller = poller;
    this.size = size;
  }

  void reset() {
    setInt(state, QueuePairLayout.SQ_TAIL, 0);
    setInt(state, QueuePairLayout.SQ_RUNG, 0);
  }

  /** Offset of the entry to be written next. */
  long tailOffset() {
    return (long) getInt(state, QueuePairLayout.SQ_TAIL) * Sqe.SIZE;
  }

  /** The entry at the tail has been written. */
  void advance() {
    int next = getInt(state, QueuePairLayout.SQ_TAIL) + 1;
    setInt(state, QueuePairLayout.SQ_TAIL, next == size ? 0 : next);
  }

  /** Entries written since the last {@link #ring}. */
  int unrung() {
    int ahead = getInt(state, QueuePairLayout.SQ_TAIL) - getInt(state, QueuePairLayout.SQ_RUNG);
    return ahead < 0 ? ahead + size : ahead;
  }

  /** Tells the controller of the tail. */
  void ring() {
    int tail = getInt(state, QueuePairLayout.SQ_TAIL);
    setInt(state, QueuePairLayout.SQ_RUNG, tail);
    increment(state, QueuePairLayout.SQ_DOORBELLS);
    // The controller is the other side: the store's fence orders the SQEs before the doorbell it
    // polls or that reaches it over PCIe.
    Mmio.store32(doorbells, doorbell, tail);
    poller.rang();
  }
}
