package io.gpunvme.bench;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Blocks that know their number, and the order in which all benchmarks of a run visit them. */
final class Blocks {
  /** Bytes per block. */
  static final int SIZE = 4096;

  /** Bytes of the image: several times the last-level cache share of a core. */
  static final long IMAGE = 512L << 20;

  /** Blocks in the image. */
  static final long COUNT = IMAGE / SIZE;

  private static final long LAST_WORD = SIZE - Long.BYTES;

  /** Odd multiplier of a full-period linear congruential walk over a power of two. */
  private static final long MULTIPLIER = 1_664_525;

  private static final long INCREMENT = 1_013_904_223;

  private final long count;
  private long position = 1;

  /** Those of the image. */
  Blocks() {
    this(IMAGE);
  }

  /**
   * Those of another image.
   *
   * @param bytes a power of two
   */
  Blocks(long bytes) {
    count = bytes / SIZE;
  }

  /** How many there are. */
  long count() {
    return count;
  }

  /** Marks the block at {@code offset} as number {@code block}. */
  static void stamp(MemorySegment s, long offset, long block) {
    s.set(ValueLayout.JAVA_LONG, offset, block + 1);
    s.set(ValueLayout.JAVA_LONG, offset + LAST_WORD, ~block);
  }

  /**
   * Whether the bytes at {@code offset} are block {@code block}, from its first word to its last.
   */
  static boolean is(MemorySegment s, long offset, long block) {
    return s.get(ValueLayout.JAVA_LONG, offset) == block + 1
        && s.get(ValueLayout.JAVA_LONG, offset + LAST_WORD) == ~block;
  }

  /** The next block in a pseudo-random order that visits every block once a round. */
  long next() {
    position = (position * MULTIPLIER + INCREMENT) & (count - 1);
    return position;
  }
}
