package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/**
 * Scatter gather list descriptor: 16 bytes (Base 2.0, 4.1.2): address, 4-byte length, three
 * reserved bytes, type and subtype. Static accessors on a segment and the descriptor's byte offset;
 * any alignment, for the other side may have put it anywhere.
 */
public final class SglDescriptor {
  /** Bytes of a descriptor. */
  public static final int SIZE = 16;

  /** Bus address, 8 bytes. */
  public static final int ADDRESS = 0;

  /** Length in bytes, 4 bytes. */
  public static final int LENGTH = 8;

  /** Type in bits 7:4, subtype in bits 3:0; the last byte. */
  public static final int IDENTIFIER = 15;

  /** Data to or from {@link #address}. */
  public static final int DATA_BLOCK = 0;

  /** Read data to be dropped. */
  public static final int BIT_BUCKET = 1;

  /** Points to a list of descriptors whose last one is again a segment. */
  public static final int SEGMENT = 2;

  /** Points to the final list of descriptors. */
  public static final int LAST_SEGMENT = 3;

  /** Keyed data block: message transports only. */
  public static final int KEYED_DATA_BLOCK = 4;

  /** Transport data block: message transports only. */
  public static final int TRANSPORT_DATA_BLOCK = 5;

  /** Subtype of an address in memory, the only one of PCI Express. */
  public static final int SUBTYPE_ADDRESS = 0;

  private SglDescriptor() {}

  /** Writes a descriptor with subtype {@link #SUBTYPE_ADDRESS}, reserved bytes zero. */
  public static void put(MemorySegment s, long off, int type, long address, int length) {
    Wire.i64(s, off + ADDRESS, address);
    Wire.i64(s, off + LENGTH, dptr2(type, length));
  }

  /**
   * Returns the descriptor's second half as a command's DPTR2 holds it: length, reserved, type with
   * subtype 0.
   */
  public static long dptr2(int type, int length) {
    return Integer.toUnsignedLong(length) | ((long) type << 60);
  }

  /** The bus address; 0 in a bit bucket. */
  public static long address(MemorySegment s, long off) {
    return Wire.i64(s, off + ADDRESS);
  }

  /** The length in bytes, unsigned 32 bits in a long. */
  public static long length(MemorySegment s, long off) {
    return Integer.toUnsignedLong(Wire.i32(s, off + LENGTH));
  }

  /** The descriptor type, 0..15. */
  public static int type(MemorySegment s, long off) {
    return Wire.u8(s, off + IDENTIFIER) >>> 4;
  }

  /** The descriptor subtype, 0..15. */
  public static int subtype(MemorySegment s, long off) {
    return Wire.u8(s, off + IDENTIFIER) & 0xF;
  }

  /** Whether the three reserved bytes between length and type are zero, as they must be. */
  public static boolean reservedClear(MemorySegment s, long off) {
    return (Wire.i64(s, off + LENGTH) & 0x00FF_FFFF_0000_0000L) == 0;
  }
}
