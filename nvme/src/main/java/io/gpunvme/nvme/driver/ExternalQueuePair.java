package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.driver.QueuePair.State;
import io.gpunvme.nvme.spec.Registers;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * An I/O queue pair at the controller that other code drives: a kernel on a GPU, or any code with
 * rings of its own ({@link QueueRings}).
 *
 * <p>This side never touches rings or doorbells while the pair exists. The owner is responsible for
 * CIDs, positions, deadlines and completions. It must stop driving before the pair is recovered or
 * deleted, and as soon as {@link #state} is no longer ready or {@link NvmeController#troubled} is
 * true. Made by {@link NvmeController#createExternalQueuePair}.
 *
 * <p>Safe for all threads; every method is a read of plain memory.
 */
public final class ExternalQueuePair extends IoQueuePair {
  private static final State[] STATES = State.values();

  private final int qid;
  private final int dstrd;
  private final int sqSize;
  private final int cqSize;
  private final long sqBusAddress;
  private final long cqBusAddress;
  private final QueueRings rings;
  private Runnable onClose = () -> {};
  private final AtomicInteger state = new AtomicInteger(State.BROKEN.ordinal());

  /**
   * Empties the rings.
   *
   * @param dstrd CAP.DSTRD: doorbells are 4 &lt;&lt; dstrd bytes apart
   * @param pageSize the controller's memory page size (CC.MPS), bytes
   * @param maxEntries the longest ring the controller takes
   */
  ExternalQueuePair(int qid, int dstrd, int pageSize, int maxEntries, QueueRings rings) {
    this.qid = qid;
    this.dstrd = dstrd;
    this.rings = rings;
    this.sqSize = entries("submission", rings.sqSize(), maxEntries);
    this.cqSize = entries("completion", rings.cqSize(), maxEntries);
    this.sqBusAddress = pageAligned("submission", rings.sqBusAddress(), pageSize);
    this.cqBusAddress = pageAligned("completion", rings.cqBusAddress(), pageSize);
    rebuild();
  }

  private static int entries(String queue, int size, int most) {
    if (size < 2 || size > most) {
      throw new InvalidRequestException(
          "a %s queue of %d entries is outside 2..%d (CAP.MQES)".formatted(queue, size, most));
    }
    return size;
  }

  private static long pageAligned(String queue, long bus, int pageSize) {
    if ((bus & (pageSize - 1)) != 0) {
      throw new InvalidRequestException(
          "the %s queue's bus address %Xh is not a multiple of the memory page size, %d bytes"
              .formatted(queue, bus, pageSize));
    }
    return bus;
  }

  /** Identifier of both queues, as in the SQID of its completions: 1..65535. */
  @Override
  public int qid() {
    return qid;
  }

  /** Submission queue entries. */
  @Override
  public int sqSize() {
    return sqSize;
  }

  /** Completion queue entries. */
  @Override
  public int cqSize() {
    return cqSize;
  }

  /**
   * The state of the pair. {@link State#BROKEN}: the controller was reset meanwhile, shut down, or
   * is gone; commands of the pair are over without a completion. {@link State#CLOSED}: the pair was
   * deleted, or the controller closed; the rings' memory may be freed.
   */
  @Override
  public State state() {
    return STATES[state.get()];
  }

  /**
   * Offset of the submission queue tail doorbell in BAR0, bytes. A 4-byte little-endian store,
   * never a load (Base 2.0, 3.1.3.11).
   *
   * @throws IllegalStateException if the pair is closed: another pair may have this doorbell now
   */
  public long sqDoorbellOffset() {
    requireOpen();
    return Registers.sqTailDoorbell(qid, dstrd);
  }

  /**
   * Offset of the completion queue head doorbell in BAR0, bytes.
   *
   * @throws IllegalStateException if the pair is closed: another pair may have this doorbell now
   */
  public long cqDoorbellOffset() {
    requireOpen();
    return Registers.cqHeadDoorbell(qid, dstrd);
  }

  private void requireOpen() {
    if (state() == State.CLOSED) {
      throw new IllegalStateException("queue pair " + qid + " is closed");
    }
  }

  @Override
  long sqBusAddress() {
    return sqBusAddress;
  }

  @Override
  long cqBusAddress() {
    return cqBusAddress;
  }

  @Override
  void rebuild() {
    rings.clear();
    state.set(State.READY.ordinal());
  }

  @Override
  void breakQueue() {
    state.compareAndSet(State.READY.ordinal(), State.BROKEN.ordinal());
  }

  /** What is to be done when the pair is closed; set by who makes it. */
  void onClose(Runnable action) {
    onClose = action;
  }

  @Override
  void close() {
    state.set(State.CLOSED.ordinal());
    onClose.run();
  }

  @Override
  public String toString() {
    return "external queue pair %d (%s, %d and %d entries)".formatted(qid, state(), sqSize, cqSize);
  }
}
