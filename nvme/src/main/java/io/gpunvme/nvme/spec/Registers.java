package io.gpunvme.nvme.spec;

/**
 * Byte offsets of the controller's registers in BAR0 (Base 2.0, 3.1.3) and of the doorbells behind
 * them.
 */
public final class Registers {
  /** Controller Capabilities, 8 bytes. */
  public static final int CAP = 0x00;

  /** Version. */
  public static final int VS = 0x08;

  /** Interrupt Mask Set. */
  public static final int INTMS = 0x0C;

  /** Interrupt Mask Clear. */
  public static final int INTMC = 0x10;

  /** Controller Configuration. */
  public static final int CC = 0x14;

  /** Controller Status. */
  public static final int CSTS = 0x1C;

  /** NVM Subsystem Reset. */
  public static final int NSSR = 0x20;

  /** Admin Queue Attributes. */
  public static final int AQA = 0x24;

  /** Admin Submission Queue Base Address, 8 bytes. */
  public static final int ASQ = 0x28;

  /** Admin Completion Queue Base Address, 8 bytes. */
  public static final int ACQ = 0x30;

  /** Controller Memory Buffer Location. */
  public static final int CMBLOC = 0x38;

  /** Controller Memory Buffer Size. */
  public static final int CMBSZ = 0x3C;

  /** Boot Partition Information. */
  public static final int BPINFO = 0x40;

  /** Boot Partition Read Select. */
  public static final int BPRSEL = 0x44;

  /** Boot Partition Memory Buffer Location, 8 bytes. */
  public static final int BPMBL = 0x48;

  /** Controller Memory Buffer Memory Space Control, 8 bytes. */
  public static final int CMBMSC = 0x50;

  /** Controller Memory Buffer Status. */
  public static final int CMBSTS = 0x58;

  /** Controller Memory Buffer Elasticity Buffer Size. */
  public static final int CMBEBS = 0x5C;

  /** Controller Memory Buffer Sustained Write Throughput. */
  public static final int CMBSWTP = 0x60;

  /** NVM Subsystem Shutdown. */
  public static final int NSSD = 0x64;

  /** Controller Ready Timeouts. */
  public static final int CRTO = 0x68;

  /** Persistent Memory Region Capabilities. */
  public static final int PMRCAP = 0xE00;

  /** Persistent Memory Region Control. */
  public static final int PMRCTL = 0xE04;

  /** Persistent Memory Region Status. */
  public static final int PMRSTS = 0xE08;

  /** Persistent Memory Region Elasticity Buffer Size. */
  public static final int PMREBS = 0xE0C;

  /** Persistent Memory Region Sustained Write Throughput. */
  public static final int PMRSWTP = 0xE10;

  /** Persistent Memory Region Controller Memory Space Control Lower. */
  public static final int PMRMSCL = 0xE14;

  /** Persistent Memory Region Controller Memory Space Control Upper. */
  public static final int PMRMSCU = 0xE18;

  /** First doorbell: the admin submission queue's tail. */
  public static final int DOORBELLS = 0x1000;

  /** Written to {@link #NSSR} to reset the NVM subsystem: "NVMe" (Base 2.0, 3.1.3.7). */
  public static final int NSSR_MAGIC = 0x4E564D65;

  private Registers() {}

  /**
   * Returns the offset of a submission queue's tail doorbell: {@code 1000h + 2 * qid * (4 <<
   * dstrd)}.
   *
   * @param qid queue identifier, 0 for the admin queue, to 65535
   * @param dstrd {@link Cap#DSTRD}, 0..15
   */
  public static long sqTailDoorbell(int qid, int dstrd) {
    return DOORBELLS + ((2L * qid) << (2 + dstrd));
  }

  /**
   * Returns the offset of a completion queue's head doorbell: {@code 1000h + (2 * qid + 1) * (4 <<
   * dstrd)}.
   */
  public static long cqHeadDoorbell(int qid, int dstrd) {
    return DOORBELLS + ((2L * qid + 1) << (2 + dstrd));
  }
}
