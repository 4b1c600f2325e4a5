package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CC, Controller Configuration (Base 2.0, 3.1.3.5).
 *
 * @param value the register as read
 */
public record Cc(int value) implements Register<Cc> {
  /** {@link #CSS}: the NVM Command Set. */
  public static final int CSS_NVM = 0;

  /** {@link #CSS}: all supported I/O command sets. */
  public static final int CSS_ALL = 6;

  /** {@link #CSS}: admin commands only. */
  public static final int CSS_ADMIN_ONLY = 7;

  /** {@link #AMS}: round robin. */
  public static final int AMS_ROUND_ROBIN = 0;

  /** {@link #SHN}: no shutdown requested. */
  public static final int SHN_NONE = 0;

  /** {@link #SHN}: normal shutdown. */
  public static final int SHN_NORMAL = 1;

  /** {@link #SHN}: abrupt shutdown. */
  public static final int SHN_ABRUPT = 2;

  private static final BitFieldTable TABLE = new BitFieldTable();

  public static final BitField EN = TABLE.field("EN", 0, 1, "Enable");
  public static final BitField CSS =
      TABLE.field(
          "CSS", 4, 3, "I/O Command Set Selected: 0 NVM, 6 all supported sets, 7 admin only");
  public static final BitField MPS = TABLE.field("MPS", 7, 4, "Memory Page Size: 4 KiB << MPS");
  public static final BitField AMS =
      TABLE.field(
          "AMS", 11, 3, "Arbitration Mechanism Selected: 0 round robin, 1 weighted, 7 vendor");
  public static final BitField SHN =
      TABLE.field("SHN", 14, 2, "Shutdown Notification: 0 none, 1 normal, 2 abrupt");
  public static final BitField IOSQES =
      TABLE.field("IOSQES", 16, 4, "I/O Submission Queue Entry Size, power of two");
  public static final BitField IOCQES =
      TABLE.field("IOCQES", 20, 4, "I/O Completion Queue Entry Size, power of two");
  public static final BitField CRIME =
      TABLE.field("CRIME", 24, 1, "Controller Ready Independent of Media Enable");

  @Override
  public long bits() {
    return value;
  }

  @Override
  public Cc withBits(long bits) {
    return new Cc((int) bits);
  }

  @Override
  public List<BitField> layout() {
    return TABLE.fields();
  }
}
