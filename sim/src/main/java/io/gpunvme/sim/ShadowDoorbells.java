package io.gpunvme.sim;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/**
 * The two pages of Doorbell Buffer Config (Base 2.0, 5.8): doorbell values the host writes, and
 * event indexes the controller answers with.
 *
 * <p>The workers poll the first page, so they never need the register to be written. They say so by
 * keeping each event index one behind the value last seen, where no further value ever passes it.
 * As nobody waits for a register write, no fence between the two pages is needed.
 */
final class ShadowDoorbells {
  private static final VarHandle INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();
  private static final int EVENT_INDEX_MASK = 0xFFFF;

  private final DmaSpace dma;
  private final long values;
  private final long events;
  private final long bytes;

  /**
   * @param values bus address of the page the host writes
   * @param events bus address of the page the controller writes
   * @param bytes CC.MPS in bytes
   */
  ShadowDoorbells(DmaSpace dma, long values, long events, long bytes) {
    this.dma = dma;
    this.values = values;
    this.events = events;
    this.bytes = bytes;
  }

  /** Whether both pages are mapped, in host memory. */
  boolean isMapped() {
    return dma.findHost(values, bytes) != null && dma.findHost(events, bytes) != null;
  }

  /** Whether the doorbell at this offset of the register page has a place in the pages. */
  boolean covers(long offset) {
    return offset + Integer.BYTES <= bytes;
  }

  /** The value the host stored, or {@code otherwise} if its page is not mapped any more. */
  int read(long offset, int otherwise) {
    DmaRegion r = dma.findHost(values + offset, Integer.BYTES);
    if (r == null) {
      return otherwise;
    }
    MemorySegment s = r.memory();
    // Acquire: the host's store to its buffer is the other side, as with the register.
    return (int) INT.getAcquire(s, r.offset(values + offset));
  }

  /** Tells the host that a value was seen. */
  void announce(long offset, int value) {
    @Nullable DmaRegion r = dma.findHost(events + offset, Integer.BYTES);
    if (r != null) {
      // Opaque: the host decides with it whether to write a register that nobody needs.
      INT.setOpaque(r.memory(), r.offset(events + offset), value - 1 & EVENT_INDEX_MASK);
    }
  }
}
