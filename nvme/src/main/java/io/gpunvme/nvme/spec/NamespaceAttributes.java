package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import java.util.List;

/** Identify Namespace, bytes 63:0: sizes, features, atomicity (NVM 1.0, 4.1.5.1). */
abstract sealed class NamespaceAttributes extends View permits IdentifyNamespace {
  private static final FieldTable TABLE = new FieldTable();

  private static final Field NSZE = TABLE.number("NSZE", 0, 8, "Namespace Size, logical blocks");
  private static final Field NCAP =
      TABLE.number("NCAP", 8, 8, "Namespace Capacity, logical blocks");
  private static final Field NUSE =
      TABLE.number("NUSE", 16, 8, "Namespace Utilization, logical blocks");
  private static final Field NSFEAT = TABLE.flags("NSFEAT", 24, 1, "Namespace Features");
  private static final Field NLBAF =
      TABLE.number("NLBAF", 25, 1, "Number of LBA Formats, zero-based");
  private static final Field FLBAS =
      TABLE.flags(
          "FLBAS",
          26,
          1,
          "Formatted LBA Size: bits 3:0 and 6:5 format index, bit 4 metadata at the end of the"
              + " data");
  private static final Field MC = TABLE.flags("MC", 27, 1, "Metadata Capabilities");
  private static final Field DPC =
      TABLE.flags("DPC", 28, 1, "End-to-end Data Protection Capabilities");
  private static final Field DPS =
      TABLE.flags("DPS", 29, 1, "End-to-end Data Protection Type Settings");
  private static final Field NMIC =
      TABLE.flags("NMIC", 30, 1, "Namespace Multi-path I/O and Sharing Capabilities");
  private static final Field RESCAP = TABLE.flags("RESCAP", 31, 1, "Reservation Capabilities");
  private static final Field FPI = TABLE.flags("FPI", 32, 1, "Format Progress Indicator");
  private static final Field DLFEAT =
      TABLE.flags(
          "DLFEAT",
          33,
          1,
          "Deallocate Logical Block Features: bits 2:0 what deallocated blocks read as, bit 3 Write"
              + " Zeroes may deallocate");
  private static final Field NAWUN =
      TABLE.number(
          "NAWUN", 34, 2, "Namespace Atomic Write Unit Normal, logical blocks, zero-based");
  private static final Field NAWUPF =
      TABLE.number(
          "NAWUPF", 36, 2, "Namespace Atomic Write Unit Power Fail, logical blocks, zero-based");
  private static final Field NACWU =
      TABLE.number(
          "NACWU", 38, 2, "Namespace Atomic Compare and Write Unit, logical blocks, zero-based");
  private static final Field NABSN =
      TABLE.number(
          "NABSN", 40, 2, "Namespace Atomic Boundary Size Normal, logical blocks, zero-based");
  private static final Field NABO =
      TABLE.number("NABO", 42, 2, "Namespace Atomic Boundary Offset, logical blocks");
  private static final Field NABSPF =
      TABLE.number(
          "NABSPF", 44, 2, "Namespace Atomic Boundary Size Power Fail, logical blocks, zero-based");
  private static final Field NOIOB =
      TABLE.number(
          "NOIOB", 46, 2, "Namespace Optimal I/O Boundary, logical blocks; 0 not reported");
  private static final Field NVMCAP = TABLE.number("NVMCAP", 48, 16, "NVM Capacity in bytes");

  NamespaceAttributes(MemorySegment segment) {
    super(segment, IdentifyNamespace.SIZE);
  }

  abstract IdentifyNamespace self();

  @Override
  List<Field> table() {
    return TABLE.fields();
  }

  /** Namespace Size, logical blocks. */
  public long nsze() {
    return int64(NSZE);
  }

  public IdentifyNamespace nsze(long value) {
    NSZE.number(s, value);
    return self();
  }

  /** Namespace Capacity, logical blocks. */
  public long ncap() {
    return int64(NCAP);
  }

  public IdentifyNamespace ncap(long value) {
    NCAP.number(s, value);
    return self();
  }

  /** Namespace Utilization, logical blocks. */
  public long nuse() {
    return int64(NUSE);
  }

  public IdentifyNamespace nuse(long value) {
    NUSE.number(s, value);
    return self();
  }

  /** Namespace Features. */
  public int nsfeat() {
    return int32(NSFEAT);
  }

  public IdentifyNamespace nsfeat(int value) {
    NSFEAT.number(s, value);
    return self();
  }

  /** Number of LBA Formats, zero-based. */
  public int nlbaf() {
    return int32(NLBAF);
  }

  public IdentifyNamespace nlbaf(int value) {
    NLBAF.number(s, value);
    return self();
  }

  /** Formatted LBA Size: bits 3:0 and 6:5 format index, bit 4 metadata at the end of the data. */
  public int flbas() {
    return int32(FLBAS);
  }

  public IdentifyNamespace flbas(int value) {
    FLBAS.number(s, value);
    return self();
  }

  /** Metadata Capabilities. */
  public int mc() {
    return int32(MC);
  }

  public IdentifyNamespace mc(int value) {
    MC.number(s, value);
    return self();
  }

  /** End-to-end Data Protection Capabilities. */
  public int dpc() {
    return int32(DPC);
  }

  public IdentifyNamespace dpc(int value) {
    DPC.number(s, value);
    return self();
  }

  /** End-to-end Data Protection Type Settings. */
  public int dps() {
    return int32(DPS);
  }

  public IdentifyNamespace dps(int value) {
    DPS.number(s, value);
    return self();
  }

  /** Namespace Multi-path I/O and Sharing Capabilities. */
  public int nmic() {
    return int32(NMIC);
  }

  public IdentifyNamespace nmic(int value) {
    NMIC.number(s, value);
    return self();
  }

  /** Reservation Capabilities. */
  public int rescap() {
    return int32(RESCAP);
  }

  public IdentifyNamespace rescap(int value) {
    RESCAP.number(s, value);
    return self();
  }

  /** Format Progress Indicator. */
  public int fpi() {
    return int32(FPI);
  }

  public IdentifyNamespace fpi(int value) {
    FPI.number(s, value);
    return self();
  }

  /**
   * Deallocate Logical Block Features: bits 2:0 what deallocated blocks read as, bit 3 Write Zeroes
   * may deallocate.
   */
  public int dlfeat() {
    return int32(DLFEAT);
  }

  public IdentifyNamespace dlfeat(int value) {
    DLFEAT.number(s, value);
    return self();
  }

  /** Namespace Atomic Write Unit Normal, logical blocks, zero-based. */
  public int nawun() {
    return int32(NAWUN);
  }

  public IdentifyNamespace nawun(int value) {
    NAWUN.number(s, value);
    return self();
  }

  /** Namespace Atomic Write Unit Power Fail, logical blocks, zero-based. */
  public int nawupf() {
    return int32(NAWUPF);
  }

  public IdentifyNamespace nawupf(int value) {
    NAWUPF.number(s, value);
    return self();
  }

  /** Namespace Atomic Compare and Write Unit, logical blocks, zero-based. */
  public int nacwu() {
    return int32(NACWU);
  }

  public IdentifyNamespace nacwu(int value) {
    NACWU.number(s, value);
    return self();
  }

  /** Namespace Atomic Boundary Size Normal, logical blocks, zero-based. */
  public int nabsn() {
    return int32(NABSN);
  }

  public IdentifyNamespace nabsn(int value) {
    NABSN.number(s, value);
    return self();
  }

  /** Namespace Atomic Boundary Offset, logical blocks. */
  public int nabo() {
    return int32(NABO);
  }

  public IdentifyNamespace nabo(int value) {
    NABO.number(s, value);
    return self();
  }

  /** Namespace Atomic Boundary Size Power Fail, logical blocks, zero-based. */
  public int nabspf() {
    return int32(NABSPF);
  }

  public IdentifyNamespace nabspf(int value) {
    NABSPF.number(s, value);
    return self();
  }

  /** Namespace Optimal I/O Boundary, logical blocks; 0 not reported. */
  public int noiob() {
    return int32(NOIOB);
  }

  public IdentifyNamespace noiob(int value) {
    NOIOB.number(s, value);
    return self();
  }

  /** NVM Capacity in bytes. */
  public BigInteger nvmcap() {
    return NVMCAP.big(s);
  }

  public IdentifyNamespace nvmcap(BigInteger value) {
    NVMCAP.big(s, value);
    return self();
  }

  /** The low 64 bits of {@link #nvmcap()}. */
  public long nvmcapLow() {
    return int64(NVMCAP);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public IdentifyNamespace nvmcapLow(long value) {
    NVMCAP.number(s, value);
    return self();
  }
}
