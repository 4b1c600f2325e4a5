package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/**
 * A range of Dataset Management: 16 bytes (NVM 1.0, 3.2.3). Static accessors on a segment and the
 * range's byte offset; any alignment, since data buffers are aligned to 4 only.
 */
public final class DsmRange {
  /** Bytes of a range. */
  public static final int SIZE = 16;

  /** Most ranges in one command; CDW10 holds their number minus one. */
  public static final int MAX_RANGES = 256;

  /** Context attributes, 4 bytes. */
  public static final int ATTRIBUTES = 0;

  /** Length in logical blocks, 4 bytes; not zero-based. */
  public static final int LENGTH = 4;

  /** Starting LBA, 8 bytes. */
  public static final int SLBA = 8;

  /** CDW11 bit: Integral Dataset for Read. */
  public static final int IDR = 1;

  /** CDW11 bit: Integral Dataset for Write. */
  public static final int IDW = 1 << 1;

  /** CDW11 bit: Deallocate (TRIM). */
  public static final int AD = 1 << 2;

  private DsmRange() {}

  /**
   * Writes a range: context attributes (a hint, usually 0), logical blocks (unsigned), starting
   * LBA.
   */
  public static void put(MemorySegment s, long off, int attributes, int blocks, long slba) {
    Wire.i32(s, off + ATTRIBUTES, attributes);
    Wire.i32(s, off + LENGTH, blocks);
    Wire.i64(s, off + SLBA, slba);
  }

  /** The context attributes. */
  public static int attributes(MemorySegment s, long off) {
    return Wire.i32(s, off + ATTRIBUTES);
  }

  /** The number of logical blocks, unsigned 32 bits in a long. */
  public static long blocks(MemorySegment s, long off) {
    return Integer.toUnsignedLong(Wire.i32(s, off + LENGTH));
  }

  /** The first logical block. */
  public static long slba(MemorySegment s, long off) {
    return Wire.i64(s, off + SLBA);
  }
}
