package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CMBMSC, Controller Memory Buffer Memory Space Control (Base 2.0, 3.1.3.16).
 *
 * @param value the register as read
 */
public record Cmbmsc(long value) implements Structure {
  private static final BitField CRE =
      new BitField("CRE", 0, 1, "Capabilities Registers Enabled: CMBLOC and CMBSZ are readable");
  private static final BitField CMSE = new BitField("CMSE", 1, 1, "Controller Memory Space Enable");
  private static final BitField CBA =
      new BitField("CBA", 12, 52, "Controller Base Address, bits 63:12");
  private static final BitField[] FIELDS = {CRE, CMSE, CBA};

  /** Capabilities Registers Enabled: CMBLOC and CMBSZ are readable. */
  public boolean cre() {
    return CRE.isSet(value);
  }

  /** Returns a copy with CRE replaced. */
  public Cmbmsc withCre(boolean cre) {
    return new Cmbmsc(CRE.with(value, cre));
  }

  /** Controller Memory Space Enable. */
  public boolean cmse() {
    return CMSE.isSet(value);
  }

  /** Returns a copy with CMSE replaced. */
  public Cmbmsc withCmse(boolean cmse) {
    return new Cmbmsc(CMSE.with(value, cmse));
  }

  /** Controller Base Address, bits 63:12 of the bus address. */
  public long cba() {
    return CBA.get(value);
  }

  /** Returns a copy with CBA replaced. */
  public Cmbmsc withCba(long cba) {
    return new Cmbmsc(CBA.with(value, cba));
  }

  @Override
  public List<FieldValue> fields() {
    return BitField.decodeAll(value, FIELDS);
  }
}
