package io.gpunvme.sim;

import java.lang.foreign.MemorySegment;

/**
 * A bounded piece of fast host memory through which data goes that has no other place there. Handed
 * out and given back in the same order, as copies of one port end in the order they began. Guarded
 * by the worker's lock.
 */
final class BounceRing {
  /** Returned by {@link #take} when there is no room now. */
  static final long NONE = -1;

  /** The most bytes that can be taken at once. */
  static final long CHUNK = 128 << 10;

  /** Bytes in the ring. */
  static final long BYTES = 1 << 20;

  private final MemorySegment memory;

  // Positions count up for ever; where they lie in the memory is the remainder.
  private long taken;
  private long freed;

  /**
   * @param memory {@link #BYTES} bytes
   */
  BounceRing(MemorySegment memory) {
    this.memory = memory;
  }

  /** The memory that offsets are in. */
  MemorySegment memory() {
    return memory;
  }

  /**
   * Takes {@code bytes} that follow each other, 1..{@link #CHUNK}.
   *
   * @return their position, to be given to {@link #offset} and {@link #giveBack}, or {@link #NONE}
   */
  long take(long bytes) {
    long left = BYTES - taken % BYTES;
    long start = bytes <= left ? taken : taken + left;
    if (start + bytes - freed > BYTES) {
      return NONE;
    }
    taken = start + bytes;
    return start;
  }

  /** Where in {@link #memory} a position lies. */
  long offset(long position) {
    return position % BYTES;
  }

  /** Undoes the last {@link #take}. */
  void takeBack(long position) {
    taken = position;
  }

  /** Gives back the oldest piece taken. */
  void giveBack(long position, long bytes) {
    freed = position + bytes;
  }
}
