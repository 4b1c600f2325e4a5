package io.gpunvme.sim;

import io.gpunvme.sim.media.Media;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** The fault that data arrives changed: bits flipped in the host's buffer, or on the medium. */
final class Corruption {
  private final FaultPlan faults;

  Corruption(FaultPlan faults) {
    this.faults = faults;
  }

  private static boolean applies(SimCommand c) {
    FaultRule fault = c.fault;
    return fault != null && fault.action() == FaultRule.Action.CORRUPT && c.data.total() != 0;
  }

  private static int bits(SimCommand c) {
    FaultRule fault = c.fault;
    return fault == null ? 0 : fault.amount();
  }

  /** After a read: changes what the host gets. Returns success, which is the point. */
  int afterRead(SimCommand c, Worker w) {
    if (applies(c)) {
      for (int i = 0; i < bits(c); i++) {
        c.data.flip(faults.random(c.data.total() * Byte.SIZE), w.scratch(1));
      }
    }
    return 0;
  }

  /** After a write to {@code position}: changes what was stored, not the host's buffer. */
  int afterWrite(SimCommand c, Media media, long position, Worker w) throws IOException {
    if (applies(c)) {
      MemorySegment one = w.scratch(1);
      for (int i = 0; i < bits(c); i++) {
        long bit = faults.random(c.data.total() * Byte.SIZE);
        media.read(position + bit / Byte.SIZE, one, 0, 1);
        byte old = one.get(ValueLayout.JAVA_BYTE, 0);
        one.set(ValueLayout.JAVA_BYTE, 0, (byte) (old ^ 1 << bit % Byte.SIZE));
        media.write(position + bit / Byte.SIZE, one, 0, 1);
      }
    }
    return 0;
  }
}
