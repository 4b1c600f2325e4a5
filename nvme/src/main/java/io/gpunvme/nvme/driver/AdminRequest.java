package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * One admin command on its way: what was asked, then what came back. Guarded by the queue's lock.
 */
final class AdminRequest {
  final MemorySegment sqe;
  final @Nullable BusRange data;
  final long bytes;
  final int opcode;
  final int nsid;

  /** The slot it occupies, once it was submitted. */
  int slot;

  /** Whether it is over; the rest is valid then. */
  boolean done;

  /** Whether the host ended it, since the controller was reset or closed. */
  boolean endedByHost;

  int status;
  int dw0;
  int cid;

  AdminRequest(MemorySegment sqe, @Nullable BusRange data, long bytes) {
    this.sqe = sqe;
    this.data = data;
    this.bytes = bytes;
    this.opcode = Sqe.opcode(sqe, 0);
    this.nsid = Sqe.nsid(sqe, 0);
  }
}
