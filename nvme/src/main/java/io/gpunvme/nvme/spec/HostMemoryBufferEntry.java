package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/**
 * Host Memory Buffer Descriptor Entry: 16 bytes (Base 2.0, 5.27.1.10). Static accessors on a
 * segment and the entry's byte offset; any alignment.
 */
public final class HostMemoryBufferEntry {
  /** Bytes of an entry. */
  public static final int SIZE = 16;

  /** Buffer Address, 8 bytes, a multiple of the memory page size. */
  public static final int BADD = 0;

  /** Buffer Size in memory pages (CC.MPS), 4 bytes. */
  public static final int BSIZE = 8;

  private HostMemoryBufferEntry() {}

  /** Writes an entry, reserved bytes zero. */
  public static void put(MemorySegment s, long off, long busAddress, int pages) {
    Wire.i64(s, off + BADD, busAddress);
    Wire.i64(s, off + BSIZE, Integer.toUnsignedLong(pages));
  }

  /** The buffer's bus address. */
  public static long badd(MemorySegment s, long off) {
    return Wire.i64(s, off + BADD);
  }

  /** The buffer's size in memory pages, unsigned 32 bits in a long. */
  public static long bsize(MemorySegment s, long off) {
    return Integer.toUnsignedLong(Wire.i32(s, off + BSIZE));
  }
}
