package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CAP, Controller Capabilities (Base 2.0, 3.1.3.1).
 *
 * @param value the register as read
 */
public record Cap(long value) implements Register<Cap> {
  /** Bit of {@link #CSS}: the NVM Command Set. */
  public static final int CSS_NVM = 1;

  /** Bit of {@link #CSS}: one or more I/O command sets, chosen by identifier. */
  public static final int CSS_IO_COMMAND_SETS = 1 << 6;

  /** Bit of {@link #CSS}: no I/O command set at all. */
  public static final int CSS_ADMIN_ONLY = 1 << 7;

  /** Bit of {@link #CRMS}: Controller Ready With Media. */
  public static final int CRMS_WITH_MEDIA = 1;

  /** Bit of {@link #CRMS}: Controller Ready Independent of Media. */
  public static final int CRMS_INDEPENDENT_OF_MEDIA = 1 << 1;

  private static final BitFieldTable TABLE = new BitFieldTable();

  public static final BitField MQES =
      TABLE.field("MQES", 0, 16, "Maximum Queue Entries Supported, zero-based");
  public static final BitField CQR = TABLE.field("CQR", 16, 1, "Contiguous Queues Required");
  public static final BitField AMS =
      TABLE.field(
          "AMS",
          17,
          2,
          "Arbitration Mechanism Supported: bit 0 weighted round robin, bit 1 vendor");
  public static final BitField TO =
      TABLE.field("TO", 24, 8, "Timeout for CSTS.RDY to change, in units of 500 ms");
  public static final BitField DSTRD =
      TABLE.field("DSTRD", 32, 4, "Doorbell Stride: 4 << DSTRD bytes");
  public static final BitField NSSRS = TABLE.field("NSSRS", 36, 1, "NVM Subsystem Reset Supported");
  public static final BitField CSS =
      TABLE.field(
          "CSS",
          37,
          8,
          "Command Sets Supported: bit 0 NVM, bit 6 I/O command sets by identifier, bit 7 admin"
              + " only");
  public static final BitField BPS = TABLE.field("BPS", 45, 1, "Boot Partition Support");
  public static final BitField CPS =
      TABLE.field(
          "CPS",
          46,
          2,
          "Controller Power Scope: 0 not reported, 1 controller, 2 domain, 3 NVM subsystem");
  public static final BitField MPSMIN =
      TABLE.field("MPSMIN", 48, 4, "Memory Page Size Minimum: 4 KiB << MPSMIN");
  public static final BitField MPSMAX =
      TABLE.field("MPSMAX", 52, 4, "Memory Page Size Maximum: 4 KiB << MPSMAX");
  public static final BitField PMRS =
      TABLE.field("PMRS", 56, 1, "Persistent Memory Region Supported");
  public static final BitField CMBS =
      TABLE.field("CMBS", 57, 1, "Controller Memory Buffer Supported");
  public static final BitField NSSS =
      TABLE.field("NSSS", 58, 1, "NVM Subsystem Shutdown Supported");
  public static final BitField CRMS =
      TABLE.field(
          "CRMS",
          59,
          2,
          "Controller Ready Modes Supported: bit 0 with media, bit 1 independent of media");

  @Override
  public long bits() {
    return value;
  }

  @Override
  public Cap withBits(long bits) {
    return new Cap(bits);
  }

  @Override
  public List<BitField> layout() {
    return TABLE.fields();
  }
}
