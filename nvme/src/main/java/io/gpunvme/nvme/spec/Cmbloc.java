package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CMBLOC, Controller Memory Buffer Location (Base 2.0, 3.1.3.11).
 *
 * @param value the register as read
 */
public record Cmbloc(int value) implements Structure {
  private static final BitField BIR =
      new BitField("BIR", 0, 3, "Base Indicator Register: number of the BAR");
  private static final BitField CQMMS =
      new BitField("CQMMS", 3, 1, "CMB Queue Mixed Memory Support");
  private static final BitField CQPDS =
      new BitField("CQPDS", 4, 1, "CMB Queue Physically Discontiguous Support");
  private static final BitField CDPMLS =
      new BitField("CDPMLS", 5, 1, "CMB Data Pointer Mixed Locations Support");
  private static final BitField CDPCILS =
      new BitField("CDPCILS", 6, 1, "CMB Data Pointer and Command Independent Locations Support");
  private static final BitField CDMMMS =
      new BitField("CDMMMS", 7, 1, "CMB Data Metadata Mixed Memory Support");
  private static final BitField CQDA = new BitField("CQDA", 8, 1, "CMB Queue Dword Alignment");
  private static final BitField OFST =
      new BitField("OFST", 12, 20, "Offset in the BAR, in units of CMBSZ.SZU");
  private static final BitField[] FIELDS = {BIR, CQMMS, CQPDS, CDPMLS, CDPCILS, CDMMMS, CQDA, OFST};

  /** Base Indicator Register: number of the BAR. */
  public int bir() {
    return BIR.get(value);
  }

  /** Returns a copy with BIR replaced. */
  public Cmbloc withBir(int bir) {
    return new Cmbloc(BIR.with(value, bir));
  }

  /** CMB Queue Mixed Memory Support. */
  public boolean cqmms() {
    return CQMMS.get(value) != 0;
  }

  /** Returns a copy with CQMMS replaced. */
  public Cmbloc withCqmms(boolean cqmms) {
    return new Cmbloc(CQMMS.with(value, cqmms));
  }

  /** CMB Queue Physically Discontiguous Support. */
  public boolean cqpds() {
    return CQPDS.get(value) != 0;
  }

  /** Returns a copy with CQPDS replaced. */
  public Cmbloc withCqpds(boolean cqpds) {
    return new Cmbloc(CQPDS.with(value, cqpds));
  }

  /** CMB Data Pointer Mixed Locations Support. */
  public boolean cdpmls() {
    return CDPMLS.get(value) != 0;
  }

  /** Returns a copy with CDPMLS replaced. */
  public Cmbloc withCdpmls(boolean cdpmls) {
    return new Cmbloc(CDPMLS.with(value, cdpmls));
  }

  /** CMB Data Pointer and Command Independent Locations Support. */
  public boolean cdpcils() {
    return CDPCILS.get(value) != 0;
  }

  /** Returns a copy with CDPCILS replaced. */
  public Cmbloc withCdpcils(boolean cdpcils) {
    return new Cmbloc(CDPCILS.with(value, cdpcils));
  }

  /** CMB Data Metadata Mixed Memory Support. */
  public boolean cdmmms() {
    return CDMMMS.get(value) != 0;
  }

  /** Returns a copy with CDMMMS replaced. */
  public Cmbloc withCdmmms(boolean cdmmms) {
    return new Cmbloc(CDMMMS.with(value, cdmmms));
  }

  /** CMB Queue Dword Alignment. */
  public boolean cqda() {
    return CQDA.get(value) != 0;
  }

  /** Returns a copy with CQDA replaced. */
  public Cmbloc withCqda(boolean cqda) {
    return new Cmbloc(CQDA.with(value, cqda));
  }

  /** Offset in the BAR, in units of CMBSZ.SZU. */
  public int ofst() {
    return OFST.get(value);
  }

  /** Returns a copy with OFST replaced. */
  public Cmbloc withOfst(int ofst) {
    return new Cmbloc(OFST.with(value, ofst));
  }

  @Override
  public List<FieldValue> fields() {
    return BitField.decodeAll(value, FIELDS);
  }
}
