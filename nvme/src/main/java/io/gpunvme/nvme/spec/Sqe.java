package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/**
 * Submission queue entry: 64 bytes (Base 2.0, 3.3.3.1). Static accessors on a segment and the
 * entry's byte offset, which must be a multiple of 8 in memory aligned to 8. Plain loads and
 * stores: the doorbell orders them. Values wider than their field are cut.
 */
public final class Sqe {
  /** Bytes of an entry; CC.IOSQES = 6. */
  public static final int SIZE = 64;

  /** Opcode, 1 byte. */
  public static final int OPCODE = 0;

  /** FUSE (bits 1:0) and PSDT (bits 7:6), 1 byte. */
  public static final int FLAGS = 1;

  /** Command Identifier, 2 bytes. */
  public static final int CID = 2;

  /** Namespace Identifier. */
  public static final int NSID = 4;

  /** Command Dword 2. */
  public static final int CDW2 = 8;

  /** Command Dword 3. */
  public static final int CDW3 = 12;

  /** Metadata Pointer, 8 bytes. */
  public static final int MPTR = 16;

  /** Data Pointer, first half: PRP Entry 1, or the address of SGL Entry 1. */
  public static final int DPTR1 = 24;

  /** Data Pointer, second half: PRP Entry 2, or length and type of SGL Entry 1. */
  public static final int DPTR2 = 32;

  /** Command Dword 10. */
  public static final int CDW10 = 40;

  /** Command Dword 11. */
  public static final int CDW11 = 44;

  /** Command Dword 12. */
  public static final int CDW12 = 48;

  /** Command Dword 13. */
  public static final int CDW13 = 52;

  /** Command Dword 14. */
  public static final int CDW14 = 56;

  /** Command Dword 15. */
  public static final int CDW15 = 60;

  /** {@link #psdt} of a command whose data pointer holds PRP entries. */
  public static final int PSDT_PRP = 0;

  /**
   * {@link #psdt} of a command that uses an SGL for data and one contiguous buffer for metadata.
   */
  public static final int PSDT_SGL = 1;

  /** {@link #psdt} of a command that uses SGLs for both data and metadata. */
  public static final int PSDT_SGL_METADATA = 2;

  /** The namespace identifier that addresses all namespaces. */
  public static final int NSID_ALL = 0xFFFF_FFFF;

  private static final long LOW_WORD = 0xFFFF_FFFFL;

  private Sqe() {}

  /** Writes a whole entry, dwords 2 and 3 zero; {@code cdw0} comes from {@link #cdw0}. */
  public static void put(
      MemorySegment s,
      long off,
      int cdw0,
      int nsid,
      long mptr,
      long dptr1,
      long dptr2,
      int cdw10,
      int cdw11,
      int cdw12,
      int cdw13,
      int cdw14,
      int cdw15) {
    Wire.LONG.set(s, off, pair(cdw0, nsid));
    Wire.LONG.set(s, off + CDW2, 0L);
    Wire.LONG.set(s, off + MPTR, mptr);
    Wire.LONG.set(s, off + DPTR1, dptr1);
    Wire.LONG.set(s, off + DPTR2, dptr2);
    Wire.LONG.set(s, off + CDW10, pair(cdw10, cdw11));
    Wire.LONG.set(s, off + CDW12, pair(cdw12, cdw13));
    Wire.LONG.set(s, off + CDW14, pair(cdw14, cdw15));
  }

  /** Returns command dword 0: opcode, flags (FUSE and PSDT) and command identifier. */
  public static int cdw0(int opcode, int flags, int cid) {
    return (opcode & 0xFF) | ((flags & 0xFF) << 8) | (cid << 16);
  }

  /** Zeroes the entry. */
  public static void clear(MemorySegment s, long off) {
    put(s, off, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
  }

  private static long pair(int low, int high) {
    return (low & LOW_WORD) | ((long) high << 32);
  }

  /** The opcode, 0..255. */
  public static int opcode(MemorySegment s, long off) {
    return Wire.u8(s, off + OPCODE);
  }

  /** Sets the opcode, 0..255. */
  public static void opcode(MemorySegment s, long off, int value) {
    Wire.u8(s, off + OPCODE, value);
  }

  /** The byte that holds FUSE and PSDT. */
  public static int flags(MemorySegment s, long off) {
    return Wire.u8(s, off + FLAGS);
  }

  /** Sets the byte that holds FUSE and PSDT. */
  public static void flags(MemorySegment s, long off, int value) {
    Wire.u8(s, off + FLAGS, value);
  }

  /** FUSE: 0 normal, 1 first, 2 second command of a fused operation. */
  public static int fuse(MemorySegment s, long off) {
    return Wire.u8(s, off + FLAGS) & 3;
  }

  /** Sets FUSE: 0 normal, 1 first, 2 second command of a fused operation. */
  public static void fuse(MemorySegment s, long off, int value) {
    Wire.u8(s, off + FLAGS, (Wire.u8(s, off + FLAGS) & ~3) | (value & 3));
  }

  /** PSDT: {@link #PSDT_PRP}, {@link #PSDT_SGL} or {@link #PSDT_SGL_METADATA}. */
  public static int psdt(MemorySegment s, long off) {
    return Wire.u8(s, off + FLAGS) >>> 6;
  }

  /** Sets PSDT: {@link #PSDT_PRP}, {@link #PSDT_SGL} or {@link #PSDT_SGL_METADATA}. */
  public static void psdt(MemorySegment s, long off, int value) {
    Wire.u8(s, off + FLAGS, (Wire.u8(s, off + FLAGS) & 0x3F) | (value << 6));
  }

  /** The command identifier, 0..65535. */
  public static int cid(MemorySegment s, long off) {
    return (short) Wire.SHORT.get(s, off + CID) & 0xFFFF;
  }

  /** Sets the command identifier. */
  public static void cid(MemorySegment s, long off, int value) {
    Wire.SHORT.set(s, off + CID, (short) value);
  }

  /** The namespace identifier, unsigned. */
  public static int nsid(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + NSID);
  }

  /** Sets the namespace identifier, unsigned. */
  public static void nsid(MemorySegment s, long off, int value) {
    Wire.INT.set(s, off + NSID, value);
  }

  /** Command dword 2. */
  public static int cdw2(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + CDW2);
  }

  /** Sets command dword 2. */
  public static void cdw2(MemorySegment s, long off, int value) {
    Wire.INT.set(s, off + CDW2, value);
  }

  /** Command dword 3. */
  public static int cdw3(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + CDW3);
  }

  /** Sets command dword 3. */
  public static void cdw3(MemorySegment s, long off, int value) {
    Wire.INT.set(s, off + CDW3, value);
  }

  /** The metadata pointer. */
  public static long mptr(MemorySegment s, long off) {
    return (long) Wire.LONG.get(s, off + MPTR);
  }

  /** Sets the metadata pointer. */
  public static void mptr(MemorySegment s, long off, long value) {
    Wire.LONG.set(s, off + MPTR, value);
  }

  /** PRP entry 1, or the address of SGL entry 1. */
  public static long dptr1(MemorySegment s, long off) {
    return (long) Wire.LONG.get(s, off + DPTR1);
  }

  /** Sets PRP entry 1, or the address of SGL entry 1. */
  public static void dptr1(MemorySegment s, long off, long value) {
    Wire.LONG.set(s, off + DPTR1, value);
  }

  /** PRP entry 2, or length and type of SGL entry 1. */
  public static long dptr2(MemorySegment s, long off) {
    return (long) Wire.LONG.get(s, off + DPTR2);
  }

  /** Sets PRP entry 2, or length and type of SGL entry 1. */
  public static void dptr2(MemorySegment s, long off, long value) {
    Wire.LONG.set(s, off + DPTR2, value);
  }

  /** Command dword 10. */
  public static int cdw10(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + CDW10);
  }

  /** Sets command dword 10. */
  public static void cdw10(MemorySegment s, long off, int value) {
    Wire.INT.set(s, off + CDW10, value);
  }

  /** Command dword 11. */
  public static int cdw11(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + CDW11);
  }

  /** Sets command dword 11. */
  public static void cdw11(MemorySegment s, long off, int value) {
    Wire.INT.set(s, off + CDW11, value);
  }

  /** Command dword 12. */
  public static int cdw12(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + CDW12);
  }

  /** Sets command dword 12. */
  public static void cdw12(MemorySegment s, long off, int value) {
    Wire.INT.set(s, off + CDW12, value);
  }

  /** Command dword 13. */
  public static int cdw13(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + CDW13);
  }

  /** Sets command dword 13. */
  public static void cdw13(MemorySegment s, long off, int value) {
    Wire.INT.set(s, off + CDW13, value);
  }

  /** Command dword 14. */
  public static int cdw14(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + CDW14);
  }

  /** Sets command dword 14. */
  public static void cdw14(MemorySegment s, long off, int value) {
    Wire.INT.set(s, off + CDW14, value);
  }

  /** Command dword 15. */
  public static int cdw15(MemorySegment s, long off) {
    return (int) Wire.INT.get(s, off + CDW15);
  }

  /** Sets command dword 15. */
  public static void cdw15(MemorySegment s, long off, int value) {
    Wire.INT.set(s, off + CDW15, value);
  }

  /** The starting LBA of an I/O command: dwords 10 and 11 (NVM 1.0, 3.2). */
  public static long slba(MemorySegment s, long off) {
    return (long) Wire.LONG.get(s, off + CDW10);
  }

  /** Sets the starting LBA of an I/O command. */
  public static void slba(MemorySegment s, long off, long value) {
    Wire.LONG.set(s, off + CDW10, value);
  }

  /** Returns one line with every dword that matters, for logs and failure messages. */
  public static String describe(MemorySegment s, long off) {
    StringBuilder text = new StringBuilder(160);
    text.append(
        "opcode %02Xh flags %02Xh cid %d nsid %s"
            .formatted(
                opcode(s, off),
                flags(s, off),
                cid(s, off),
                Integer.toUnsignedString(nsid(s, off))));
    text.append(
        " mptr %X dptr %X %X cdw10-15".formatted(mptr(s, off), dptr1(s, off), dptr2(s, off)));
    for (int dword = CDW10; dword <= CDW15; dword += Integer.BYTES) {
      text.append(' ').append("%08X".formatted((int) Wire.INT.get(s, off + dword)));
    }
    return text.toString();
  }
}
