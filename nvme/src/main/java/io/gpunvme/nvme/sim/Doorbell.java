package io.gpunvme.nvme.sim;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * The word in which the host announces one queue's tail or head: the register, or after Doorbell
 * Buffer Config a word in the host's memory. Guarded by the queue's worker.
 */
final class Doorbell {
  private static final VarHandle INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();

  private final MemorySegment registers;
  private final long offset;
  private @Nullable ShadowDoorbells shadow;
  private int last;

  Doorbell(MemorySegment registers, long offset) {
    this.registers = registers;
    this.offset = offset;
    INT.setRelease(registers, offset, 0);
  }

  /** Watches the host's memory from now on; what it holds at this moment is no news. */
  void shadow(ShadowDoorbells pages) {
    if (pages.covers(offset)) {
      shadow = pages;
      last = pages.read(offset, last);
      pages.announce(offset, last);
    }
  }

  /** Whether the host has stored another value since the last call; {@link #value} is it. */
  boolean changed() {
    // Acquire: the host's release store of the doorbell is the other side; what it wrote to the
    // queue before is visible after this load.
    int now = shadow == null ? (int) INT.getAcquire(registers, offset) : shadow.read(offset, last);
    if (now == last) {
      return false;
    }
    last = now;
    if (shadow != null) {
      shadow.announce(offset, now);
    }
    return true;
  }

  /** The value last seen, as the host stored it. */
  int value() {
    return last;
  }

  /** Zeroes the register: its queue is gone. */
  void clear() {
    INT.setRelease(registers, offset, 0);
  }
}
