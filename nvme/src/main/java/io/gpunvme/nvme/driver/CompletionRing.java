package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.pci.Mmio;
import io.gpunvme.nvme.spec.Cqe;
import java.lang.foreign.MemorySegment;

/**
 * Where a {@link QueuePair} reads its next CQE, and what the controller was told of it. Used by the
 * one thread that drives the queue.
 */
final class CompletionRing {
  /** An SQID no queue has: written over a consumed CQE so that a half-written successor shows. */
  private static final int NO_SQID = 0xFFFF;

  private final MemorySegment cq;
  private final MemorySegment doorbells;
  private final long doorbell;
  private final int qid;
  private final int size;
  private int head;

  /** The phase tag of entries of this lap. */
  private int phase;

  private long doorbellStores;

  /**
   * @param cq the entries
   * @param doorbell offset of the head doorbell in {@code doorbells}
   */
  CompletionRing(MemorySegment cq, MemorySegment doorbells, long doorbell, int qid) {
    this.cq = cq;
    this.doorbells = doorbells;
    this.doorbell = doorbell;
    this.qid = qid;
    this.size = (int) (cq.byteSize() / Cqe.SIZE);
  }

  void reset() {
    cq.fill((byte) 0);
    for (int i = 0; i < size; i++) {
      Cqe.dw2(cq, (long) i * Cqe.SIZE, NO_SQID << 16);
    }
    head = 0;
    phase = 1;
  }

  private long headOffset() {
    return (long) head * Cqe.SIZE;
  }

  /** Dword 3 of the entry at the head: CID, status and phase tag. */
  int peek() {
    // The controller is the other side: acquire on the word with the phase orders the rest of the
    // entry after it.
    return Cqe.dw3Acquire(cq, headOffset());
  }

  /** Whether {@link #peek} saw an entry of this lap. */
  boolean isNew(int dw3) {
    return Cqe.phase(dw3) == phase;
  }

  /** Whether the entry at the head is complete and this queue's. */
  boolean isWhole() {
    return Cqe.sqid(cq, headOffset()) == qid;
  }

  /** Consumes the entry at the head; returns its dword 0. */
  int take() {
    long at = headOffset();
    int dw0 = Cqe.dw0(cq, at);
    Cqe.dw2(cq, at, NO_SQID << 16);
    if (++head == size) {
      head = 0;
      phase ^= 1;
    }
    return dw0;
  }

  /** Returns everything consumed to the controller. */
  void ring() {
    doorbellStores++;
    // After a fence: the entries were read before the controller may overwrite them.
    Mmio.store32(doorbells, doorbell, head);
  }

  /** How often {@link #ring} was called. */
  long doorbellStores() {
    return doorbellStores;
  }
}
