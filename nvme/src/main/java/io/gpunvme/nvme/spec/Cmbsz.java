package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CMBSZ, Controller Memory Buffer Size (Base 2.0, 3.1.3.12).
 *
 * @param value the register as read
 */
public record Cmbsz(int value) implements Register<Cmbsz> {
  private static final BitFieldTable TABLE = new BitFieldTable();

  public static final BitField SQS = TABLE.field("SQS", 0, 1, "Submission Queue Support");
  public static final BitField CQS = TABLE.field("CQS", 1, 1, "Completion Queue Support");
  public static final BitField LISTS = TABLE.field("LISTS", 2, 1, "PRP SGL List Support");
  public static final BitField RDS = TABLE.field("RDS", 3, 1, "Read Data Support");
  public static final BitField WDS = TABLE.field("WDS", 4, 1, "Write Data Support");
  public static final BitField SZU = TABLE.field("SZU", 8, 4, "Size Units: 4 KiB << 4 * SZU");
  public static final BitField SZ = TABLE.field("SZ", 12, 20, "Size, in units of SZU");

  /** Size units in bytes: 4 KiB to 64 GiB; larger codes are reserved. */
  public long unit() {
    return 4096L << (4 * get(SZU));
  }

  /** Size of the buffer in bytes; 0 when there is none. */
  public long bytes() {
    return get(SZ) * unit();
  }

  @Override
  public long bits() {
    return value;
  }

  @Override
  public Cmbsz withBits(long bits) {
    return new Cmbsz((int) bits);
  }

  @Override
  public List<BitField> layout() {
    return TABLE.fields();
  }
}
