package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/**
 * Physical Region Page entries (Base 2.0, 4.1.1): 8-byte bus addresses; the low bits are an offset
 * into a memory page, which only a command's first entry, or the pointer to its first list, may
 * have.
 */
public final class Prp {
  /** Bytes of an entry. */
  public static final int ENTRY = 8;

  /** The data of PRP Entry 1 starts at a multiple of this many bytes. */
  public static final int DATA_ALIGNMENT = 4;

  private Prp() {}

  /** Returns the entry at byte offset {@code off} of a list. */
  public static long get(MemorySegment list, long off) {
    return Wire.i64(list, off);
  }

  /** Writes the entry at byte offset {@code off} of a list. */
  public static void put(MemorySegment list, long off, long busAddress) {
    Wire.i64(list, off, busAddress);
  }

  /**
   * Returns the page offset in {@code entry}; {@code pageSize} is CC.MPS in bytes, a power of two.
   */
  public static long offset(long entry, long pageSize) {
    return entry & (pageSize - 1);
  }
}
