package io.gpunvme.nvme.driver;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * The state of a queue pair as plain memory, so that whoever drives it, Java or a kernel on a GPU,
 * sees the same fields under the same names.
 *
 * <p>Five lines of {@value #LINE} bytes (two cache lines each, so that the adjacent-line prefetcher
 * does not couple them), then one {@value #SLOT_BYTES}-byte record per command slot:
 *
 * <pre>
 *   0  fixed     written once at creation, read by the initiator
 * 128  producer  written by whoever submits
 * 256  consumer  written by whoever polls
 * 384  state     written by the control plane (any thread), read by the initiator
 * 512  slots     depth records; then the free list, depth 4-byte slot numbers
 * </pre>
 *
 * All values little-endian and naturally aligned.
 */
final class QueuePairLayout {
  static final int LINE = 128;

  // fixed
  static final int QID = 0;
  static final int DEPTH = 4;
  static final int SQ_SIZE = 8;
  static final int CQ_SIZE = 12;
  static final int SLOT_BITS = 16;
  static final int SQ_BUS = 24;
  static final int CQ_BUS = 32;

  // producer
  static final int SQ_TAIL = LINE;
  static final int SQ_RUNG = LINE + 4;
  static final int FREE_COUNT = LINE + 8;
  static final int BATCH_NANOS = LINE + 16;
  static final int SUBMITTED = LINE + 24;
  static final int SQ_DOORBELLS = LINE + 32;

  // consumer
  static final int CQ_HEAD = 2 * LINE;
  static final int CQ_PHASE = 2 * LINE + 4;
  static final int QUARANTINED = 2 * LINE + 8;
  static final int COMPLETED = 2 * LINE + 16;
  static final int CQ_DOORBELLS = 2 * LINE + 24;
  static final int STALE = 2 * LINE + 32;
  static final int UNKNOWN = 2 * LINE + 40;
  static final int MALFORMED = 2 * LINE + 48;
  static final int COMPLETED_NANOS = 2 * LINE + 56;

  // state
  static final int STATE = 3 * LINE;

  static final int SLOTS = 4 * LINE;
  static final int SLOT_BYTES = 64;

  // one slot
  static final int SLOT_STATE = 0;
  static final int SLOT_CID = 4;
  static final int SLOT_USER_DATA = 8;
  static final int SLOT_SUBMITTED_NANOS = 16;
  static final int SLOT_SLBA = 24;
  static final int SLOT_NSID = 32;
  static final int SLOT_OPCODE = 36;
  static final int SLOT_DW0 = 40;

  /** The slot holds no command. */
  static final int FREE = 0;

  /** A command is with the controller. */
  static final int IN_FLIGHT = 1;

  /** The command's deadline passed and its fate is unknown: the CID must not be reused. */
  static final int QUARANTINE = 2;

  private static final VarHandle INT = exact(ValueLayout.JAVA_INT);
  private static final VarHandle LONG = exact(ValueLayout.JAVA_LONG);

  private QueuePairLayout() {}

  private static VarHandle exact(ValueLayout layout) {
    return layout.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();
  }

  static long bytes(int depth) {
    return SLOTS + (long) depth * (SLOT_BYTES + Integer.BYTES);
  }

  static long slot(int slot) {
    return SLOTS + (long) slot * SLOT_BYTES;
  }

  static long freeEntry(int depth, int index) {
    return SLOTS + (long) depth * SLOT_BYTES + (long) index * Integer.BYTES;
  }

  static int getInt(MemorySegment s, long offset) {
    return (int) INT.get(s, offset);
  }

  static void setInt(MemorySegment s, long offset, int value) {
    INT.set(s, offset, value);
  }

  static int getIntAcquire(MemorySegment s, long offset) {
    return (int) INT.getAcquire(s, offset);
  }

  static void setIntRelease(MemorySegment s, long offset, int value) {
    INT.setRelease(s, offset, value);
  }

  static void casInt(MemorySegment s, long offset, int expected, int value) {
    boolean changed = INT.compareAndSet(s, offset, expected, value);
    assert changed || getIntAcquire(s, offset) != expected;
  }

  static long getLong(MemorySegment s, long offset) {
    return (long) LONG.get(s, offset);
  }

  static void setLong(MemorySegment s, long offset, long value) {
    LONG.set(s, offset, value);
  }

  static void increment(MemorySegment s, long offset) {
    LONG.set(s, offset, (long) LONG.get(s, offset) + 1);
  }
}
