package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CMBSTS, Controller Memory Buffer Status (Base 2.0, 3.1.3.17).
 *
 * @param value the register as read
 */
public record Cmbsts(int value) implements Structure {
  private static final BitField CBAI =
      new BitField("CBAI", 0, 1, "Controller Base Address Invalid");
  private static final BitField[] FIELDS = {CBAI};

  /** Controller Base Address Invalid. */
  public boolean cbai() {
    return CBAI.get(value) != 0;
  }

  /** Returns a copy with CBAI replaced. */
  public Cmbsts withCbai(boolean cbai) {
    return new Cmbsts(CBAI.with(value, cbai));
  }

  @Override
  public List<FieldValue> fields() {
    return BitField.decodeAll(value, FIELDS);
  }
}
