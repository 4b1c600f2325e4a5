package io.gpunvme.sim;

import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/** A queue pair as a host keeps it, with every step visible: for tests, one thread at a time. */
final class RawQueue {
  private static final VarHandle INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();

  final int qid;
  final int sqSize;
  final int cqSize;
  final DmaBuffer sq;
  final DmaBuffer cq;
  int tail;
  int head;
  int phase = 1;
  int nextCid = 1;
  private final MemorySegment doorbells;
  private final long stride;

  RawQueue(
      int qid,
      int sqSize,
      int cqSize,
      DmaBuffer sq,
      DmaBuffer cq,
      MemorySegment doorbells,
      int dstrd) {
    this.qid = qid;
    this.sqSize = sqSize;
    this.cqSize = cqSize;
    this.sq = sq;
    this.cq = cq;
    this.doorbells = doorbells;
    stride = 4L << dstrd;
  }

  /** What the controller posted. */
  record Completion(int dw0, int dw1, int sqhd, int sqid, int cid, int status) {}

  /** Copies a command in with the next CID, which is returned. Does not ring. */
  int push(MemorySegment sqe) {
    int cid = nextCid;
    nextCid = nextCid + 1 & 0xFFFF;
    push(sqe, cid);
    return cid;
  }

  /** Copies a command in with this CID. Does not ring. */
  void push(MemorySegment sqe, int cid) {
    MemorySegment.copy(sqe, 0, sq.memory(), (long) tail * Sqe.SIZE, Sqe.SIZE);
    Sqe.cid(sq.memory(), (long) tail * Sqe.SIZE, cid);
    tail = (tail + 1) % sqSize;
  }

  /** Stores the tail. */
  void ring() {
    ringTail(tail);
  }

  /** Stores anything into the tail doorbell. */
  void ringTail(int value) {
    // Release: the controller, which acquires it, sees the entries.
    INT.setRelease(doorbells, 2L * qid * stride, value);
  }

  /** Stores anything into the head doorbell. */
  void ringHead(int value) {
    INT.setRelease(doorbells, (2L * qid + 1) * stride, value);
  }

  /** Looks at the next completion without consuming it. */
  @Nullable Completion peek() {
    long at = (long) head * Cqe.SIZE;
    MemorySegment s = cq.memory();
    // Acquire: the controller's release store of dword 3 is the other side.
    int dw3 = Cqe.dw3Acquire(s, at);
    if (Cqe.phase(dw3) != phase) {
      return null;
    }
    return new Completion(
        Cqe.dw0(s, at),
        Cqe.dw1(s, at),
        Cqe.sqhd(s, at),
        Cqe.sqid(s, at),
        Cqe.cid(dw3),
        Cqe.status(dw3));
  }

  /** Takes the next completion, if there is one, and does not tell the controller. */
  @Nullable Completion take() {
    Completion c = peek();
    if (c != null) {
      head++;
      if (head == cqSize) {
        head = 0;
        phase ^= 1;
      }
    }
    return c;
  }

  /** Takes the next completion, if there is one, and tells the controller. */
  @Nullable Completion poll() {
    Completion c = take();
    if (c != null) {
      ringHead(head);
    }
    return c;
  }
}
