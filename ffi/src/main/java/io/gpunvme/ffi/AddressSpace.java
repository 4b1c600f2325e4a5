package io.gpunvme.ffi;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/**
 * This process's memory by address, little-endian: for the innermost loops only, and only where the
 * caller itself has checked that the address lies in memory that stays allocated meanwhile. Nothing
 * here checks anything: a wrong address ends the process, or worse.
 *
 * <p>Why: an access through a {@link MemorySegment} asks the segment for its bounds, its lifetime
 * and its alignment. Where a process has segments of several kinds, as any of ours has, these are
 * virtual calls, and cost more than what a loop of a few loads per turn does. The one segment here
 * is a constant to the compiler, so that nothing of them is left: 20 instead of 35 ns for a command
 * of the queue benchmarks' responder.
 */
public final class AddressSpace {
  @SuppressWarnings("restricted")
  private static final MemorySegment ALL = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final VarHandle LONGS = LONG.varHandle().withInvokeExactBehavior();
  private static final VarHandle INTS =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN).varHandle().withInvokeExactBehavior();

  private AddressSpace() {}

  /**
   * Memory that somebody else keeps for as long as it is used.
   *
   * @param bytes 0 or more
   */
  public static MemorySegment at(long address, long bytes) {
    return ALL.asSlice(address, bytes);
  }

  /** The 8 bytes at {@code address}, a multiple of 8. */
  public static long getLong(long address) {
    return (long) LONGS.get(ALL, address);
  }

  /** Stores 8 bytes at {@code address}, a multiple of 8. */
  public static void setLong(long address, long value) {
    LONGS.set(ALL, address, value);
  }

  /** As {@link #setLong}, after every earlier load and store of this thread. */
  public static void setLongRelease(long address, long value) {
    LONGS.setRelease(ALL, address, value);
  }

  /** The 4 bytes at {@code address}, a multiple of 4; before every later load and store. */
  public static int getIntAcquire(long address) {
    return (int) INTS.getAcquire(ALL, address);
  }

  /** Copies {@code bytes} bytes; the two ranges may overlap. */
  public static void copy(long from, long to, long bytes) {
    MemorySegment.copy(ALL, from, ALL, to, bytes);
  }
}
