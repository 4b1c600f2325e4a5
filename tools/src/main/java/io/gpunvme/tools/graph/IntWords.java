package io.gpunvme.tools.graph;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * More unsigned 32-bit words than an array can have, outside of Java's heap: one for each vertex.
 * Threads may add to words at the same time.
 */
final class IntWords {
  private static final ValueLayout.OfInt WORD =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle HANDLE = WORD.arrayElementVarHandle().withInvokeExactBehavior();

  private final MemorySegment segment;

  /** Over memory whose words they are. */
  IntWords(MemorySegment segment) {
    this.segment = segment;
  }

  /** Words that are all 0. */
  static IntWords allocate(Arena arena, long count) {
    return new IntWords(arena.allocate(count * Integer.BYTES, Long.BYTES));
  }

  MemorySegment segment() {
    return segment;
  }

  long size() {
    return segment.byteSize() / Integer.BYTES;
  }

  int getInt(long i) {
    return segment.getAtIndex(WORD, i);
  }

  /** The word without its sign. */
  long get(long i) {
    return Integer.toUnsignedLong(getInt(i));
  }

  void set(long i, long value) {
    segment.setAtIndex(WORD, i, (int) value);
  }

  void fill(int value) {
    for (long i = 0; i < size(); i++) {
      set(i, value);
    }
  }

  /** Adds, together with other threads; returns what it was. */
  long getAndAdd(long i, int more) {
    return Integer.toUnsignedLong((int) HANDLE.getAndAdd(segment, 0L, i, more));
  }
}
