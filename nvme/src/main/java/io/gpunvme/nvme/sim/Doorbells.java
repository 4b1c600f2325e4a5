package io.gpunvme.nvme.sim;

import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.nvme.spec.Registers;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The doorbell registers: plain shared memory that the host stores to and the workers poll (Base
 * 2.0, 3.1.3.24 and 3.1.3.25). A store by the host is the whole submission; nothing traps.
 */
final class Doorbells {
  private static final VarHandle INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();

  private final SharedMemory shared;
  private final MemorySegment memory;
  private final int dstrd;

  /**
   * @param queues queue pairs, the admin queues included
   */
  Doorbells(int queues, int dstrd) {
    this.dstrd = dstrd;
    long bytes = Registers.sqTailDoorbell(queues, dstrd) - Registers.DOORBELLS;
    shared = SharedMemory.allocate("gpunvme-doorbells", bytes);
    memory = shared.segment();
  }

  /** The memory; starts at offset 1000h of BAR0. */
  MemorySegment memory() {
    return memory;
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
    return new Doorbell(memory, sqTail(qid));
  }

  /** The doorbell of a completion queue. */
  Doorbell ofCq(int qid) {
    return new Doorbell(memory, cqHead(qid));
  }

  /** The value at an offset of {@link #memory}, for looking where no queue is. */
  int read(long offset) {
    return (int) INT.getOpaque(memory, offset);
  }

  /** A store by a host that comes through the register interface. */
  void write(long offset, int value) {
    // Release: what the host stored before must be there for the worker that acquires the doorbell.
    INT.setRelease(memory, offset, value);
  }

  /** Zeroes the doorbells of every queue. */
  void clear() {
    for (int qid = 0; qid < pairs(); qid++) {
      write(sqTail(qid), 0);
      write(cqHead(qid), 0);
    }
  }

  void close() {
    shared.close();
  }
}
