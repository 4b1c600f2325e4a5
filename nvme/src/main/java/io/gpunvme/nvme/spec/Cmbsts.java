package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CMBSTS, Controller Memory Buffer Status (Base 2.0, 3.1.3.17).
 *
 * @param value the register as read
 */
public record Cmbsts(int value) implements Register<Cmbsts> {
  private static final BitFieldTable TABLE = new BitFieldTable();

  public static final BitField CBAI = TABLE.field("CBAI", 0, 1, "Controller Base Address Invalid");

  @Override
  public long bits() {
    return value;
  }

  @Override
  public Cmbsts withBits(long bits) {
    return new Cmbsts((int) bits);
  }

  @Override
  public List<BitField> layout() {
    return TABLE.fields();
  }
}
