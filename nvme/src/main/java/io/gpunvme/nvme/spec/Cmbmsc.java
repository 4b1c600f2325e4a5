package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CMBMSC, Controller Memory Buffer Memory Space Control (Base 2.0, 3.1.3.16).
 *
 * @param value the register as read
 */
public record Cmbmsc(long value) implements Register<Cmbmsc> {
  private static final BitFieldTable TABLE = new BitFieldTable();

  public static final BitField CRE =
      TABLE.field("CRE", 0, 1, "Capabilities Registers Enabled: CMBLOC and CMBSZ are readable");
  public static final BitField CMSE = TABLE.field("CMSE", 1, 1, "Controller Memory Space Enable");
  public static final BitField CBA =
      TABLE.field("CBA", 12, 52, "Controller Base Address, bits 63:12");

  @Override
  public long bits() {
    return value;
  }

  @Override
  public Cmbmsc withBits(long bits) {
    return new Cmbmsc(bits);
  }

  @Override
  public List<BitField> layout() {
    return TABLE.fields();
  }
}
