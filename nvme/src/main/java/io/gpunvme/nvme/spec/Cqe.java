package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/**
 * Completion queue entry: 16 bytes (Base 2.0, 3.3.3.2). Static accessors on a segment and the
 * entry's byte offset, which must be a multiple of 8 in memory aligned to 8.
 *
 * <p>The controller writes dword 3 last; the host reads it first, with acquire, and the rest only
 * when the phase tag is the one it waits for.
 */
public final class Cqe {
  /** Bytes of an entry; CC.IOCQES = 4. */
  public static final int SIZE = 16;

  /** Command-specific result. */
  public static final int DW0 = 0;

  /** Command-specific result, second dword. */
  public static final int DW1 = 4;

  /** SQ Head Pointer (bits 15:0) and SQ Identifier (bits 31:16). */
  public static final int DW2 = 8;

  /** Command Identifier (bits 15:0), Phase Tag (bit 16), Status Field (bits 31:17). */
  public static final int DW3 = 12;

  private static final int STATUS_MASK = 0x7FFF;

  private Cqe() {}

  /** Command-specific result. */
  public static int dw0(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + DW0);
  }

  /** Command-specific result, second dword. */
  public static int dw1(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + DW1);
  }

  /**
   * The submission queue's head when the controller wrote this entry: every older slot is free
   * again.
   */
  public static int sqhd(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + DW2) & 0xFFFF;
  }

  /** The submission queue the command came from. */
  public static int sqid(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + DW2) >>> 16;
  }

  /** Writes dword 2: the SQ Head Pointer and the SQ Identifier. */
  public static void dw2(MemorySegment s, long off, int value) {
    Wire.INT.set(s, off + DW2, value);
  }

  /** Dword 3 in one aligned load with acquire; pairs with the controller's last store. */
  public static int dw3Acquire(MemorySegment s, long off) {
    return (int) Wire.INT.getAcquire(s, off + DW3);
  }

  /** The command identifier in dword 3. */
  public static int cid(int dw3) {
    return dw3 & 0xFFFF;
  }

  /** The phase tag in dword 3: 0 or 1. */
  public static int phase(int dw3) {
    return (dw3 >>> 16) & 1;
  }

  /** The 15-bit status field in dword 3, see {@link Status}; 0 is success. */
  public static int status(int dw3) {
    return dw3 >>> 17;
  }

  /** Returns dword 3 of an entry; each value is cut to its field. */
  public static int dw3(int cid, int status, int phase) {
    return (cid & 0xFFFF) | ((phase & 1) << 16) | ((status & STATUS_MASK) << 17);
  }

  /**
   * Writes a whole entry; dwords 2 and 3 go last and together, with release, so that the phase tag
   * publishes the rest.
   */
  public static void put(
      MemorySegment s,
      long off,
      int dw0,
      int dw1,
      int sqhd,
      int sqid,
      int cid,
      int status,
      int phase) {
    Wire.LONG.set(s, off + DW0, pair(dw0, dw1));
    int dw2 = (sqhd & 0xFFFF) | (sqid << 16);
    Wire.LONG.setRelease(s, off + DW2, pair(dw2, dw3(cid, status, phase)));
  }

  private static long pair(int low, int high) {
    return (low & 0xFFFF_FFFFL) | (long) high << Integer.SIZE;
  }
}
