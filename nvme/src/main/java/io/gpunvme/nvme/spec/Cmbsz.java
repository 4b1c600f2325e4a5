package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CMBSZ, Controller Memory Buffer Size (Base 2.0, 3.1.3.12).
 *
 * @param value the register as read
 */
public record Cmbsz(int value) implements Structure {
  private static final BitField SQS = new BitField("SQS", 0, 1, "Submission Queue Support");
  private static final BitField CQS = new BitField("CQS", 1, 1, "Completion Queue Support");
  private static final BitField LISTS = new BitField("LISTS", 2, 1, "PRP SGL List Support");
  private static final BitField RDS = new BitField("RDS", 3, 1, "Read Data Support");
  private static final BitField WDS = new BitField("WDS", 4, 1, "Write Data Support");
  private static final BitField SZU = new BitField("SZU", 8, 4, "Size Units: 4 KiB << 4 * SZU");
  private static final BitField SZ = new BitField("SZ", 12, 20, "Size, in units of SZU");
  private static final BitField[] FIELDS = {SQS, CQS, LISTS, RDS, WDS, SZU, SZ};

  /** Submission Queue Support. */
  public boolean sqs() {
    return SQS.get(value) != 0;
  }

  /** Returns a copy with SQS replaced. */
  public Cmbsz withSqs(boolean sqs) {
    return new Cmbsz(SQS.with(value, sqs));
  }

  /** Completion Queue Support. */
  public boolean cqs() {
    return CQS.get(value) != 0;
  }

  /** Returns a copy with CQS replaced. */
  public Cmbsz withCqs(boolean cqs) {
    return new Cmbsz(CQS.with(value, cqs));
  }

  /** PRP SGL List Support. */
  public boolean lists() {
    return LISTS.get(value) != 0;
  }

  /** Returns a copy with LISTS replaced. */
  public Cmbsz withLists(boolean lists) {
    return new Cmbsz(LISTS.with(value, lists));
  }

  /** Read Data Support. */
  public boolean rds() {
    return RDS.get(value) != 0;
  }

  /** Returns a copy with RDS replaced. */
  public Cmbsz withRds(boolean rds) {
    return new Cmbsz(RDS.with(value, rds));
  }

  /** Write Data Support. */
  public boolean wds() {
    return WDS.get(value) != 0;
  }

  /** Returns a copy with WDS replaced. */
  public Cmbsz withWds(boolean wds) {
    return new Cmbsz(WDS.with(value, wds));
  }

  /** Size Units: 4 KiB shifted left by 4 * SZU. */
  public int szu() {
    return SZU.get(value);
  }

  /** Returns a copy with SZU replaced. */
  public Cmbsz withSzu(int szu) {
    return new Cmbsz(SZU.with(value, szu));
  }

  /** Size, in units of SZU. */
  public int sz() {
    return SZ.get(value);
  }

  /** Returns a copy with SZ replaced. */
  public Cmbsz withSz(int sz) {
    return new Cmbsz(SZ.with(value, sz));
  }

  /** Size units in bytes: 4 KiB to 64 GiB; larger codes are reserved. */
  public long unit() {
    return 4096L << (4 * szu());
  }

  /** Size of the buffer in bytes; 0 when there is none. */
  public long bytes() {
    return sz() * unit();
  }

  @Override
  public List<FieldValue> fields() {
    return BitField.decodeAll(value, FIELDS);
  }
}
