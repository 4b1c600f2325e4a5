package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * Little-endian access to memory: aligned handles for queue entries, unaligned ones for pages that
 * may lie in a byte array.
 */
final class Wire {
  static final VarHandle SHORT = exact(ValueLayout.JAVA_SHORT);
  static final VarHandle INT = exact(ValueLayout.JAVA_INT);
  static final VarHandle LONG = exact(ValueLayout.JAVA_LONG);

  private static final VarHandle INT_UNALIGNED = exact(ValueLayout.JAVA_INT_UNALIGNED);
  private static final VarHandle LONG_UNALIGNED = exact(ValueLayout.JAVA_LONG_UNALIGNED);

  private Wire() {}

  private static VarHandle exact(ValueLayout layout) {
    return layout.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();
  }

  /** Returns the first {@code size} bytes of a segment that must have them. */
  static MemorySegment first(MemorySegment segment, int size, String what) {
    if (segment.byteSize() < size) {
      throw new IllegalArgumentException(
          "%s needs %d bytes, the segment has %d".formatted(what, size, segment.byteSize()));
    }
    return segment.asSlice(0, size);
  }

  static int u8(MemorySegment s, long offset) {
    return s.get(ValueLayout.JAVA_BYTE, offset) & 0xFF;
  }

  static void u8(MemorySegment s, long offset, int value) {
    s.set(ValueLayout.JAVA_BYTE, offset, (byte) value);
  }

  static int i32(MemorySegment s, long offset) {
    return (int) INT_UNALIGNED.get(s, offset);
  }

  static void i32(MemorySegment s, long offset, int value) {
    INT_UNALIGNED.set(s, offset, value);
  }

  static long i64(MemorySegment s, long offset) {
    return (long) LONG_UNALIGNED.get(s, offset);
  }

  static void i64(MemorySegment s, long offset, long value) {
    LONG_UNALIGNED.set(s, offset, value);
  }
}
