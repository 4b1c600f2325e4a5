package io.gpunvme.sim;

import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.spec.Registers;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The doorbell registers: plain shared memory that the host stores to and the workers poll (Base
 * 2.0, 3.1.3.24 and 3.1.3.25). A store by the host is the whole submission; nothing traps.
 *
 * <p>They are there twice, once for each {@link DoorbellWindow}, so that it can be told who rang.
 */
final class DoorbellArray {
  private static final VarHandle INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();

  private final long bytes;

  // Replaced with every worker's lock held.
  private volatile SharedMemory shared;
  private volatile MemorySegment memory;

  private final SharedMemory peerShared;
  private final MemorySegment peerMemory;
  private final int dstrd;

  /**
   * @param queues queue pairs, the admin queues included
   */
  DoorbellArray(int queues, int dstrd) {
    this.dstrd = dstrd;
    bytes = Registers.sqTailDoorbell(queues, dstrd) - Registers.DOORBELLS;
    shared = SharedMemory.allocate("gpunvme-doorbells", Registers.DOORBELLS + bytes);
    memory = shared.segment().asSlice(Registers.DOORBELLS);
    peerShared = SharedMemory.allocate("gpunvme-peer-doorbells", bytes);
    peerMemory = peerShared.segment();
  }

  /** The CPU's window; starts at offset 1000h of BAR0. */
  MemorySegment memory() {
    return memory;
  }

  /**
   * BAR 0 for another process: the doorbells are at their offset, where registers are is nothing.
   */
  SharedMemory shared() {
    return shared;
  }

  /**
   * Makes the CPU's window other memory, zeroed: whoever has the old one reaches nothing any more.
   * No queue exists, and every worker's lock is held.
   */
  void renew() {
    SharedMemory old = shared;
    SharedMemory fresh = SharedMemory.allocate("gpunvme-doorbells", Registers.DOORBELLS + bytes);
    memory = fresh.segment().asSlice(Registers.DOORBELLS);
    shared = fresh;
    old.close();
  }

  /** The peer's window, as large and with the same layout. */
  MemorySegment peerMemory() {
    return peerMemory;
  }

  /** How many queue pairs have doorbells in {@link #memory}, whether or not they can exist. */
  int pairs() {
    return (int) Math.min(1 << 16, memory.byteSize() >>> (3 + dstrd));
  }

  /** Where a submission queue's tail doorbell lies in {@link #memory}. */
  long sqTail(int qid) {
    return Registers.sqTailDoorbell(qid, dstrd) - Registers.DOORBELLS;
  }

  /** Where a completion queue's head doorbell lies in {@link #memory}. */
  long cqHead(int qid) {
    return Registers.cqHeadDoorbell(qid, dstrd) - Registers.DOORBELLS;
  }

  /** The doorbell of a submission queue. */
  Doorbell ofSq(int qid) {
    return new Doorbell(memory, peerMemory, sqTail(qid));
  }

  /** The doorbell of a completion queue. */
  Doorbell ofCq(int qid) {
    return new Doorbell(memory, peerMemory, cqHead(qid));
  }

  /** Puts a doorbell back to zero; whether it was anything else, in either window. */
  boolean takeBack(long offset) {
    if (((int) INT.getOpaque(memory, offset) | (int) INT.getOpaque(peerMemory, offset)) == 0) {
      return false;
    }
    clear(offset);
    return true;
  }

  /** A store by a host that comes through the register interface. */
  void write(long offset, int value) {
    // Release: what the host stored before must be there for the worker that acquires the doorbell.
    INT.setRelease(memory, offset, value);
  }

  /** Zeroes the doorbells of every queue. */
  void clear() {
    for (int qid = 0; qid < pairs(); qid++) {
      clear(sqTail(qid));
      clear(cqHead(qid));
    }
  }

  private void clear(long offset) {
    INT.setRelease(memory, offset, 0);
    INT.setRelease(peerMemory, offset, 0);
  }

  void close() {
    try {
      shared.close();
    } finally {
      peerShared.close();
    }
  }
}
