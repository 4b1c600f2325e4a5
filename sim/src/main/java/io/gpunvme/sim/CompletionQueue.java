package io.gpunvme.sim;

import io.gpunvme.nvme.spec.Cqe;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * One completion queue: where the next entry goes, what the host has consumed, and the completions
 * that must wait because it is full. Guarded by its worker's lock.
 */
final class CompletionQueue {
  private static final VarHandle INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();

  private final int qid;
  private final int size;
  private final RingMemory ring;
  private final Doorbell doorbell;
  private final Worker worker;
  private final boolean interrupts;
  private final int vector;
  private int head;
  private int tail;
  private int phase = 1;
  private long posted;
  private int submissionQueues;
  private boolean interruptDue;
  private boolean waiting;
  private boolean deleted;
  private @Nullable RemoteRing remote;
  private @Nullable SimCommand firstHeldBack;
  private @Nullable SimCommand lastHeldBack;

  /**
   * @param size entries, 2..65536
   * @param worker serves this queue and its submission queues
   * @param interrupts IEN
   * @param vector IV
   */
  CompletionQueue(
      int qid,
      int size,
      RingMemory ring,
      Doorbell doorbell,
      Worker worker,
      boolean interrupts,
      int vector) {
    this.qid = qid;
    this.size = size;
    this.ring = ring;
    this.doorbell = doorbell;
    this.worker = worker;
    this.interrupts = interrupts;
    this.vector = vector;
  }

  int qid() {
    return qid;
  }

  Worker worker() {
    return worker;
  }

  Doorbell doorbell() {
    return doorbell;
  }

  boolean interrupts() {
    return interrupts;
  }

  int vector() {
    return vector;
  }

  /** How many submission queues complete here. */
  int submissionQueues() {
    return submissionQueues;
  }

  void submissionQueues(int count) {
    submissionQueues = count;
  }

  /** Whether the host has consumed everything posted. */
  boolean isEmpty() {
    return head == tail;
  }

  /** Whether another entry fits. One always stays free: a full queue must not look empty. */
  boolean hasRoom() {
    int next = tail + 1;
    return (next == size ? 0 : next) != head;
  }

  /**
   * Takes over the host's head.
   *
   * @return whether the value is one that a correct host cannot have written; it is ignored then.
   *     The head may move forward only, and not past what was posted.
   */
  boolean headIsWrong() {
    int value = doorbell.value();
    if (value < 0 || value >= size || distance(head, value) > distance(head, tail)) {
      doorbell.reject(head);
      return true;
    }
    head = value;
    return false;
  }

  private int distance(int from, int to) {
    return to >= from ? to - from : to - from + size;
  }

  /**
   * Whether entries can be written.
   *
   * @throws RemoteFailure if they are in remote memory that cannot be reached
   */
  boolean isMapped() {
    if (!ring.ready()) {
      return false;
    }
    DmaRegion region = ring.remote();
    return region == null || isUsable(region);
  }

  private boolean isUsable(DmaRegion region) {
    RemoteRing entries = remote;
    if (entries == null) {
      entries = new RemoteRing(ring, worker.channels().of(region), size);
      remote = entries;
    }
    return entries.isUsable();
  }

  /** The phase tag of the next entry. */
  int phase() {
    return phase;
  }

  /** The memory of the next entry. */
  MemorySegment segment() {
    return segment(tail);
  }

  /** Where in {@link #segment()} the next entry starts. */
  long offset() {
    return offset(tail);
  }

  /** The memory of entry {@code index}; of a remote queue, what {@link #flush} copies there. */
  MemorySegment segment(int index) {
    RemoteRing entries = remote;
    return entries == null ? ring.segment(index) : entries.memory();
  }

  /** Where in {@link #segment(int)} entry {@code index} starts. */
  long offset(int index) {
    return remote == null ? ring.offset(index) : (long) index * Cqe.SIZE;
  }

  /** Writes only dword 3 of the next entry: a controller whose writes arrive in the wrong order. */
  void publish(int dw3) {
    INT.setRelease(segment(tail), offset(tail) + Cqe.DW3, dw3);
    if (remote != null) {
      remote.sendPhase(tail);
    }
    advance();
  }

  /** Entry {@code index} was written again. */
  void rewritten(int index) {
    if (remote != null) {
      remote.sendAgain(index);
    }
  }

  // ---- remote memory; nothing of this does anything to a queue in host memory

  /**
   * Sends the entries written since the last call on their way.
   *
   * @throws RemoteFailure if that fails, or the queue has been unmapped since they were written
   */
  void flush() {
    RemoteRing entries = remote;
    if (entries != null && entries.isBehind(tail)) {
      if (!isMapped()) {
        throw new RemoteFailure("completion queue " + qid + " is not mapped any more");
      }
      entries.send(tail);
    }
  }

  /**
   * Returns when all entries sent have arrived.
   *
   * @throws RemoteFailure if one did not
   */
  void settle() {
    if (remote != null) {
      remote.settle();
    }
  }

  /** Sends what there is; afterwards nothing is copied to the queue any more. */
  private void end() {
    RemoteRing entries = remote;
    if (entries == null) {
      return;
    }
    try {
      flush();
      entries.settle();
    } catch (RemoteFailure e) {
      // What is lost was lost before; and nothing is under way, for the ports are closed.
    }
    entries.close();
    remote = null;
  }

  /** Index of the next entry. */
  int tail() {
    return tail;
  }

  /** The next entry is written. */
  void advance() {
    posted++;
    if (++tail == size) {
      tail = 0;
      phase ^= 1;
    }
  }

  /** Entries ever written. */
  long posted() {
    return posted;
  }

  /** Entries the host has consumed, as far as it has said so. */
  long consumed() {
    return posted - distance(head, tail);
  }

  /** Whether the host has to be told of entries posted since the last interrupt. */
  boolean interruptDue() {
    return interruptDue;
  }

  void interruptDue(boolean due) {
    interruptDue = due;
  }

  /** Whether the interrupt line was last told that this queue has entries to be consumed. */
  boolean isWaiting() {
    return waiting;
  }

  void waiting(boolean told) {
    waiting = told;
  }

  /** Appends a completion that has to wait for room. */
  void holdBack(SimCommand c) {
    c.nextHeldBack = null;
    if (lastHeldBack == null) {
      firstHeldBack = c;
    } else {
      lastHeldBack.nextHeldBack = c;
    }
    lastHeldBack = c;
  }

  /** Whether completions wait for room. */
  boolean holdsBack() {
    return firstHeldBack != null;
  }

  /** Removes the completion that has waited longest. */
  @Nullable SimCommand takeHeldBack() {
    SimCommand c = firstHeldBack;
    if (c != null) {
      firstHeldBack = c.nextHeldBack;
      c.nextHeldBack = null;
      if (firstHeldBack == null) {
        lastHeldBack = null;
      }
    }
    return c;
  }

  /** The queue is gone; nothing is posted any more. */
  void delete() {
    end();
    deleted = true;
    doorbell.clear();
  }

  boolean isDeleted() {
    return deleted;
  }
}
