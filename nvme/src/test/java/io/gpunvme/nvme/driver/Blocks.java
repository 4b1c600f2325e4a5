package io.gpunvme.nvme.driver;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Block contents that say which block and which writing they belong to. */
final class Blocks {
  private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED;

  private Blocks() {}

  /** Fills whole blocks; {@code mark} tells writings apart. */
  static void fill(MemorySegment s, long offset, long slba, long blocks, int blockSize, int mark) {
    for (long at = 0; at < blocks * blockSize; at += Integer.BYTES) {
      s.set(INT, offset + at, value(slba + at / blockSize, (int) (at % blockSize), mark));
    }
  }

  /** The offset of the first wrong word, or -1 if all blocks are as {@link #fill} left them. */
  static long mismatch(
      MemorySegment s, long offset, long slba, long blocks, int blockSize, int mark) {
    for (long at = 0; at < blocks * blockSize; at += Integer.BYTES) {
      if (s.get(INT, offset + at) != value(slba + at / blockSize, (int) (at % blockSize), mark)) {
        return at;
      }
    }
    return -1;
  }

  /** Whether every byte of a range is zero. */
  static boolean zero(MemorySegment s, long offset, long bytes) {
    for (long at = 0; at < bytes; at += Integer.BYTES) {
      if (s.get(INT, offset + at) != 0) {
        return false;
      }
    }
    return true;
  }

  private static int value(long lba, int offset, int mark) {
    long x = (lba * 0x9E3779B97F4A7C15L ^ (long) offset << 40 ^ mark) * 0xBF58476D1CE4E5B9L;
    return (int) (x >>> 32) | 1;
  }
}
