package io.gpunvme.sim;

import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import java.util.BitSet;

/** Which commands a fault rule is about. Immutable; {@link #matches} allocates nothing. */
final class FaultMatch {
  /** {@link #queue()} of a rule about all queues. */
  static final int ANY_QUEUE = -1;

  /** {@link #nsid()} of a rule about all namespaces. */
  static final int ANY_NAMESPACE = 0;

  private static final VarHandle INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();

  private final int queue;
  private final BitSet admin;
  private final BitSet io;
  private final int nsid;
  private final boolean anyLba;
  private final long firstLba;
  private final long lastLba;
  private final int[] pattern;
  private final int[] mask;

  FaultMatch(FaultRule.Builder b) {
    queue = b.queue;
    admin = (BitSet) b.admin.clone();
    io = (BitSet) b.io.clone();
    nsid = b.nsid;
    anyLba = !b.lbaGiven;
    firstLba = b.firstLba;
    lastLba = b.lastLba;
    pattern = b.pattern.clone();
    mask = b.mask.clone();
  }

  int queue() {
    return queue;
  }

  int nsid() {
    return nsid;
  }

  boolean anyLba() {
    return anyLba;
  }

  long firstLba() {
    return firstLba;
  }

  long lastLba() {
    return lastLba;
  }

  BitSet admin() {
    return (BitSet) admin.clone();
  }

  BitSet io() {
    return (BitSet) io.clone();
  }

  int pattern(int dword) {
    return pattern[dword];
  }

  int mask(int dword) {
    return mask[dword];
  }

  /** Whether a 64-byte entry fetched from queue {@code sqid} (0: admin) is one of them. */
  boolean matches(int sqid, MemorySegment sqe) {
    if (queue != ANY_QUEUE && queue != sqid) {
      return false;
    }
    int opcode = Sqe.opcode(sqe, 0);
    if (!(sqid == 0 ? admin : io).get(opcode)) {
      return false;
    }
    if (nsid != ANY_NAMESPACE && nsid != Sqe.nsid(sqe, 0)) {
      return false;
    }
    return (anyLba || touchesLba(sqid, opcode, sqe)) && matchesPattern(sqe);
  }

  private boolean touchesLba(int sqid, int opcode, MemorySegment sqe) {
    if (!hasLbaRange(sqid, opcode)) {
      return false;
    }
    long first = Sqe.slba(sqe, 0);
    long last = first + (Sqe.cdw12(sqe, 0) & 0xFFFF);
    return Long.compareUnsigned(first, lastLba) <= 0 && Long.compareUnsigned(last, firstLba) >= 0;
  }

  /** Whether a command names logical blocks in CDW10 to CDW12. */
  static boolean hasLbaRange(int sqid, int opcode) {
    return sqid != 0 && isRanged(opcode);
  }

  private static boolean isRanged(int opcode) {
    return switch (opcode) {
      case IoOpcode.WRITE,
          IoOpcode.READ,
          IoOpcode.WRITE_UNCORRECTABLE,
          IoOpcode.COMPARE,
          IoOpcode.WRITE_ZEROES,
          IoOpcode.VERIFY ->
          true;
      default -> false;
    };
  }

  private boolean matchesPattern(MemorySegment sqe) {
    for (int i = 0; i < mask.length; i++) {
      if (mask[i] != 0 && ((int) INT.get(sqe, (long) i * 4) & mask[i]) != pattern[i]) {
        return false;
      }
    }
    return true;
  }
}
