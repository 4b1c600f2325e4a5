package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CMBLOC, Controller Memory Buffer Location (Base 2.0, 3.1.3.11).
 *
 * @param value the register as read
 */
public record Cmbloc(int value) implements Register<Cmbloc> {
  private static final BitFieldTable TABLE = new BitFieldTable();

  public static final BitField BIR =
      TABLE.field("BIR", 0, 3, "Base Indicator Register: number of the BAR");
  public static final BitField CQMMS = TABLE.field("CQMMS", 3, 1, "CMB Queue Mixed Memory Support");
  public static final BitField CQPDS =
      TABLE.field("CQPDS", 4, 1, "CMB Queue Physically Discontiguous Support");
  public static final BitField CDPMLS =
      TABLE.field("CDPMLS", 5, 1, "CMB Data Pointer Mixed Locations Support");
  public static final BitField CDPCILS =
      TABLE.field("CDPCILS", 6, 1, "CMB Data Pointer and Command Independent Locations Support");
  public static final BitField CDMMMS =
      TABLE.field("CDMMMS", 7, 1, "CMB Data Metadata Mixed Memory Support");
  public static final BitField CQDA = TABLE.field("CQDA", 8, 1, "CMB Queue Dword Alignment");
  public static final BitField OFST =
      TABLE.field("OFST", 12, 20, "Offset in the BAR, in units of CMBSZ.SZU");

  @Override
  public long bits() {
    return value;
  }

  @Override
  public Cmbloc withBits(long bits) {
    return new Cmbloc((int) bits);
  }

  @Override
  public List<BitField> layout() {
    return TABLE.fields();
  }
}
