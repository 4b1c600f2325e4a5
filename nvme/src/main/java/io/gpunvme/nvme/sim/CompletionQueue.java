package io.gpunvme.nvme.sim;

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
      return true;
    }
    head = value;
    return false;
  }

  private int distance(int from, int to) {
    return to >= from ? to - from : to - from + size;
  }

  /** Whether entries can be written. */
  boolean isMapped() {
    return ring.ready();
  }

  /** The phase tag of the next entry. */
  int phase() {
    return phase;
  }

  /** The memory of the next entry. */
  MemorySegment segment() {
    return ring.segment(tail);
  }

  /** Where in {@link #segment()} the next entry starts. */
  long offset() {
    return ring.offset(tail);
  }

  /** The memory of entry {@code index}. */
  MemorySegment segment(int index) {
    return ring.segment(index);
  }

  /** Where in {@link #segment(int)} entry {@code index} starts. */
  long offset(int index) {
    return ring.offset(index);
  }

  /** Writes only dword 3 of the next entry: a controller whose writes arrive in the wrong order. */
  void publish(int dw3) {
    INT.setRelease(ring.segment(tail), ring.offset(tail) + Cqe.DW3, dw3);
    advance();
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
    deleted = true;
    doorbell.clear();
  }

  boolean isDeleted() {
    return deleted;
  }
}
