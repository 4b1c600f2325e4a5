package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.pci.DoorbellPoller;
import io.gpunvme.nvme.pci.Mmio;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;

/**
 * Where a {@link QueuePair} writes its next SQE, and what the controller was told of it. Never
 * full: there are fewer command slots than entries. Used by the one thread that drives the queue.
 */
final class SubmissionRing {
  private final MemorySegment doorbells;
  private final long doorbell;
  private final DoorbellPoller poller;
  private final int size;
  private int tail;

  /** The tail that the controller was told last. */
  private int rung;

  private long doorbellStores;

  /**
   * @param doorbell offset of the tail doorbell in {@code doorbells}
   * @param poller of the doorbells
   * @param size entries
   */
  SubmissionRing(MemorySegment doorbells, long doorbell, DoorbellPoller poller, int size) {
    this.doorbells = doorbells;
    this.doorbell = doorbell;
    this.poller = poller;
    this.size = size;
  }

  void reset() {
    tail = 0;
    rung = 0;
  }

  /** Offset of the entry to be written next. */
  long tailOffset() {
    return (long) tail * Sqe.SIZE;
  }

  /** The entry at the tail has been written. */
  void advance() {
    int next = tail + 1;
    tail = next == size ? 0 : next;
  }

  /** Entries written since the last {@link #ring}. */
  int unrung() {
    int ahead = tail - rung;
    return ahead < 0 ? ahead + size : ahead;
  }

  /** Tells the controller of the tail. */
  void ring() {
    rung = tail;
    doorbellStores++;
    // The controller is the other side: the store's fence orders the SQEs before the doorbell it
    // polls or that reaches it over PCIe.
    Mmio.store32(doorbells, doorbell, tail);
    poller.rang();
  }

  /** How often {@link #ring} was called. */
  long doorbellStores() {
    return doorbellStores;
  }
}
