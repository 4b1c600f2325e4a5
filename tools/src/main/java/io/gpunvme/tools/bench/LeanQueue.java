package io.gpunvme.tools.bench;

import io.gpunvme.ffi.AddressSpace;
import io.gpunvme.nvme.spec.Cqe;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;

/**
 * One queue pair as {@link LeanResponder} sees it. For one thread at a time.
 *
 * <p>Each command is compared, bit by bit, with what the benchmark kernels submit: opcode, NSID,
 * one block, every reserved field zero, SLBA a number, PRP1 the low bits of that number shifted by
 * a page, and as CID the next generation of a slot (so a command read twice, or read before it was
 * written, is wrong). Where the kernel submits in order, the number must be the next one.
 */
final class LeanQueue {
  private static final int NSID_SHIFT = 32;
  private static final int CID_SHIFT = 16;
  private static final int PAGE_SHIFT = 12;
  private static final long WORD = 0xFFFF_FFFFL;
  private static final int CID_MASK = 0xFFFF;
  private static final int PHASE = 1 << 16;

  // Addresses: the queues keep their memory for longer than anybody answers. Every index below is
  // masked to its ring.
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
    sq = queues.rings().address() + shape.sqOffset(index);
    cq = queues.rings().address() + shape.cqOffset(index);
    doorbell = queues.doorbells().address() + shape.doorbellOffset(index);
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
    int tail = AddressSpace.getIntAcquire(doorbell);
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
    char[] expected = cids;
    int at = (int) state[HEAD];
    long count = state[ANSWERED];
    long numbers = state[SUM];
    long bad = 0;
    while (at != tail) {
      long e = sq + (long) at * Sqe.SIZE;
      long e0 = AddressSpace.getLong(e);
      long e3 = AddressSpace.getLong(e + 24);
      long number = AddressSpace.getLong(e + 40);
      int cid = (int) (e0 >>> CID_SHIFT) & CID_MASK;
      int slot = CIDS + (cid & generation - 1);
      long difference =
          ((e0 ^ cdw0AndNsid) & ~((long) CID_MASK << CID_SHIFT))
              | (e3 ^ (number << PAGE_SHIFT & WORD))
              | (number & ~WORD)
              | ((number ^ count) & orderMask)
              | (expected[slot] ^ cid)
              | zeroes(e);
      expected[slot] = (char) next(cid, generation);
      if (difference != 0) {
        bad++;
      }
      numbers += number;
      at = at + 1 & sqMask;
      complete(count, cid, at);
      count++;
    }
    state[HEAD] = at;
    state[ANSWERED] = count;
    state[SUM] = numbers;
    state[WRONG] += bad;
  }

  /** CDW2 and 3, MPTR, PRP2, CDW12 (one block) to 15: all zero. */
  private static long zeroes(long e) {
    return AddressSpace.getLong(e + 8)
        | AddressSpace.getLong(e + 16)
        | AddressSpace.getLong(e + 32)
        | AddressSpace.getLong(e + 48)
        | AddressSpace.getLong(e + 56);
  }

  private void complete(long position, int cid, int sqhd) {
    int entry = (int) position & (1 << cqBits) - 1;
    long c = cq + (long) entry * Cqe.SIZE;
    int phase = (int) (~position >>> cqBits & 1) * PHASE;
    AddressSpace.setLong(c, 0);
    // Release: the half with the phase comes last; the initiator is the other side.
    AddressSpace.setLongRelease(c + 8, (long) (cid | phase) << NSID_SHIFT | sqid | sqhd);
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
