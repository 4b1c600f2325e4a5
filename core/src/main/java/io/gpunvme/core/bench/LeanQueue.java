package io.gpunvme.core.bench;

import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * One queue pair as {@link LeanResponder} sees it. For one thread at a time.
 *
 * <p>Each command is compared, bit by bit, with what the benchmark kernels submit: opcode, NSID,
 * one block, every reserved field zero, SLBA a number, PRP1 the low bits of that number shifted by
 * a page, and as CID the next generation of a slot (so a command read twice, or read before it was
 * written, is wrong). Where the kernel submits in order, the number must be the next one.
 */
final class LeanQueue {
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle RELEASE = LONG.varHandle().withInvokeExactBehavior();
  private static final VarHandle DOORBELL =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();

  private static final int NSID_SHIFT = 32;
  private static final int CID_SHIFT = 16;
  private static final int PAGE_SHIFT = 12;
  private static final long WORD = 0xFFFF_FFFFL;
  private static final int CID_MASK = 0xFFFF;
  private static final int PHASE = 1 << 16;

  private final MemorySegment rings;
  private final MemorySegment doorbells;
  private final long sq;
  private final long cq;
  private final long doorbell;
  private final long cdw0AndNsid;
  private final long sqid;
  private final int sqMask;
  private final int cqBits;
  private final int generation;
  private final long orderMask;

  // What changes with each command lies apart from whatever the garbage collector puts beside it:
  // queues of different threads that share cache lines cost a third of the rate.
  private static final int APART = 16;
  private static final int HEAD = APART;
  private static final int ANSWERED = APART + 1;
  private static final int WRONG = APART + 2;
  private static final int CHANGES = APART + 3;
  private static final int SUM = APART + 4;

  private final long[] state = new long[3 * APART];

  /** The CID that each slot's next command must have, from {@link #CIDS} on. */
  private final char[] cids;

  private static final int CIDS = 64;

  /**
   * A queue on which nothing was submitted.
   *
   * @param ordered whether commands come in the order of their numbers
   */
  LeanQueue(BenchQueues queues, int index, boolean ordered) {
    QueueShape shape = queues.shape();
    rings = queues.rings();
    doorbells = queues.doorbells();
    sq = shape.sqOffset(index);
    cq = shape.cqOffset(index);
    doorbell = shape.doorbellOffset(index);
    cdw0AndNsid = (long) BenchQueues.NSID << NSID_SHIFT | IoOpcode.READ;
    sqid = (long) BenchQueues.qid(index) << CID_SHIFT;
    sqMask = shape.sqSize() - 1;
    cqBits = shape.cqBits();
    generation = 1 << shape.slotBits();
    orderMask = ordered ? WORD : 0;
    cids = new char[CIDS + generation + CIDS];
    for (int slot = 0; slot < shape.depth(); slot++) {
      cids[CIDS + slot] = (char) (shape.shared() ? next(slot, generation) : slot);
    }
  }

  /** Answers what the doorbell announces; false if that is nothing. */
  boolean turn() {
    // Acquire: the initiator's stores to the ring come before its store to the doorbell.
    int tail = (int) DOORBELL.getAcquire(doorbells, doorbell);
    if (tail == (int) state[HEAD]) {
      return false;
    }
    state[CHANGES]++;
    if ((tail & ~sqMask) != 0) {
      // Answering it would leave the ring. The commands expire, and the benchmark fails by this
      // count.
      state[WRONG]++;
      return false;
    }
    answer(tail);
    return true;
  }

  private void answer(int tail) {
    MemorySegment m = rings;
    char[] expected = cids;
    int at = (int) state[HEAD];
    long count = state[ANSWERED];
    long numbers = state[SUM];
    long bad = 0;
    while (at != tail) {
      long e = sq + (long) at * Sqe.SIZE;
      long e0 = m.get(LONG, e);
      long e3 = m.get(LONG, e + 24);
      long number = m.get(LONG, e + 40);
      int cid = (int) (e0 >>> CID_SHIFT) & CID_MASK;
      int slot = CIDS + (cid & generation - 1);
      long difference =
          ((e0 ^ cdw0AndNsid) & ~((long) CID_MASK << CID_SHIFT))
              | (e3 ^ (number << PAGE_SHIFT & WORD))
              | (number & ~WORD)
              | ((number ^ count) & orderMask)
              | (expected[slot] ^ cid)
              | zeroes(m, e);
      expected[slot] = (char) next(cid, generation);
      if (difference != 0) {
        bad++;
      }
      numbers += number;
      at = at + 1 & sqMask;
      complete(m, count, cid, at);
      count++;
    }
    state[HEAD] = at;
    state[ANSWERED] = count;
    state[SUM] = numbers;
    state[WRONG] += bad;
  }

  /** CDW2 and 3, MPTR, PRP2, CDW12 (one block) to 15: all zero. */
  private static long zeroes(MemorySegment m, long e) {
    return m.get(LONG, e + 8)
        | m.get(LONG, e + 16)
        | m.get(LONG, e + 32)
        | m.get(LONG, e + 48)
        | m.get(LONG, e + 56);
  }

  private void complete(MemorySegment m, long position, int cid, int sqhd) {
    int entry = (int) position & (1 << cqBits) - 1;
    long c = cq + (long) entry * Cqe.SIZE;
    int phase = (int) (~position >>> cqBits & 1) * PHASE;
    m.set(LONG, c, 0);
    // Release: the half with the phase comes last; the initiator is the other side.
    RELEASE.setRelease(m, c + 8, (long) (cid | phase) << NSID_SHIFT | sqid | sqhd);
  }

  /** The same slot's next generation; FFFFh is none (Queue::next_cid). */
  private static int next(int cid, int generation) {
    int next = cid + generation & CID_MASK;
    return next == CID_MASK ? next + generation & CID_MASK : next;
  }

  ResponderCounts counts() {
    return new ResponderCounts(state[ANSWERED], state[WRONG], state[CHANGES], state[SUM]);
  }
}
