package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.math.BigInteger;
import java.util.List;
import java.util.stream.Stream;

/** Identify Controller, bytes 511:256: the Admin Command Set's attributes (Base 2.0, 5.17.2.1). */
abstract sealed class ControllerAdminAttributes extends ControllerCapabilities
    permits IdentifyController {
  private static final FieldTable TABLE = new FieldTable();

  private static final Field OACS = TABLE.flags("OACS", 256, 2, "Optional Admin Command Support");
  private static final Field ACL = TABLE.number("ACL", 258, 1, "Abort Command Limit, zero-based");
  private static final Field AERL =
      TABLE.number("AERL", 259, 1, "Asynchronous Event Request Limit, zero-based");
  private static final Field FRMW =
      TABLE.flags("FRMW", 260, 1, "Firmware Updates: bit 0 slot 1 read only, bits 3:1 slots");
  private static final Field LPA = TABLE.flags("LPA", 261, 1, "Log Page Attributes");
  private static final Field ELPE =
      TABLE.number("ELPE", 262, 1, "Error Log Page Entries, zero-based");
  private static final Field NPSS =
      TABLE.number("NPSS", 263, 1, "Number of Power States Support, zero-based");
  private static final Field AVSCC =
      TABLE.flags("AVSCC", 264, 1, "Admin Vendor Specific Command Configuration");
  private static final Field APSTA =
      TABLE.flags("APSTA", 265, 1, "Autonomous Power State Transition Attributes");
  private static final Field WCTEMP =
      TABLE.number("WCTEMP", 266, 2, "Warning Composite Temperature Threshold, kelvin");
  private static final Field CCTEMP =
      TABLE.number("CCTEMP", 268, 2, "Critical Composite Temperature Threshold, kelvin");
  private static final Field MTFA =
      TABLE.number("MTFA", 270, 2, "Maximum Time for Firmware Activation, 100 ms units");
  private static final Field HMPRE =
      TABLE.number("HMPRE", 272, 4, "Host Memory Buffer Preferred Size, 4 KiB units");
  private static final Field HMMIN =
      TABLE.number("HMMIN", 276, 4, "Host Memory Buffer Minimum Size, 4 KiB units");
  private static final Field TNVMCAP =
      TABLE.number("TNVMCAP", 280, 16, "Total NVM Capacity in bytes");
  private static final Field UNVMCAP =
      TABLE.number("UNVMCAP", 296, 16, "Unallocated NVM Capacity in bytes");
  private static final Field RPMBS =
      TABLE.flags("RPMBS", 312, 4, "Replay Protected Memory Block Support");
  private static final Field EDSTT =
      TABLE.number("EDSTT", 316, 2, "Extended Device Self-test Time, minutes");
  private static final Field DSTO = TABLE.flags("DSTO", 318, 1, "Device Self-test Options");
  private static final Field FWUG =
      TABLE.number("FWUG", 319, 1, "Firmware Update Granularity, 4 KiB units; 255 no restriction");
  private static final Field KAS =
      TABLE.number("KAS", 320, 2, "Keep Alive Support: granularity in 100 ms units, 0 unsupported");
  private static final Field HCTMA =
      TABLE.flags("HCTMA", 322, 2, "Host Controlled Thermal Management Attributes");
  private static final Field MNTMT =
      TABLE.number("MNTMT", 324, 2, "Minimum Thermal Management Temperature, kelvin");
  private static final Field MXTMT =
      TABLE.number("MXTMT", 326, 2, "Maximum Thermal Management Temperature, kelvin");
  private static final Field SANICAP = TABLE.flags("SANICAP", 328, 4, "Sanitize Capabilities");
  private static final Field HMMINDS =
      TABLE.number(
          "HMMINDS", 332, 4, "Host Memory Buffer Minimum Descriptor Entry Size, 4 KiB units");
  private static final Field HMMAXD =
      TABLE.number("HMMAXD", 336, 2, "Host Memory Maximum Descriptors Entries; 0 no limit");
  private static final Field NSETIDMAX =
      TABLE.number("NSETIDMAX", 338, 2, "NVM Set Identifier Maximum");
  private static final Field ENDGIDMAX =
      TABLE.number("ENDGIDMAX", 340, 2, "Endurance Group Identifier Maximum");
  private static final Field ANATT = TABLE.number("ANATT", 342, 1, "ANA Transition Time, seconds");
  private static final Field ANACAP =
      TABLE.flags("ANACAP", 343, 1, "Asymmetric Namespace Access Capabilities");
  private static final Field ANAGRPMAX =
      TABLE.number("ANAGRPMAX", 344, 4, "ANA Group Identifier Maximum");
  private static final Field NANAGRPID =
      TABLE.number("NANAGRPID", 348, 4, "Number of ANA Group Identifiers");
  private static final Field PELS =
      TABLE.number("PELS", 352, 4, "Persistent Event Log Size, 64 KiB units");
  private static final Field DOMAINID = TABLE.number("DOMAINID", 356, 2, "Domain Identifier");
  private static final Field MEGCAP =
      TABLE.number("MEGCAP", 368, 16, "Max Endurance Group Capacity in bytes");

  ControllerAdminAttributes(MemorySegment segment) {
    super(segment);
  }

  @Override
  List<Field> table() {
    return Stream.concat(super.table().stream(), TABLE.fields().stream()).toList();
  }

  /** Optional Admin Command Support. */
  public int oacs() {
    return int32(OACS);
  }

  public IdentifyController oacs(int value) {
    OACS.number(s, value);
    return self();
  }

  /** Abort Command Limit, zero-based. */
  public int acl() {
    return int32(ACL);
  }

  public IdentifyController acl(int value) {
    ACL.number(s, value);
    return self();
  }

  /** Asynchronous Event Request Limit, zero-based. */
  public int aerl() {
    return int32(AERL);
  }

  public IdentifyController aerl(int value) {
    AERL.number(s, value);
    return self();
  }

  /** Firmware Updates: bit 0 slot 1 read only, bits 3:1 slots. */
  public int frmw() {
    return int32(FRMW);
  }

  public IdentifyController frmw(int value) {
    FRMW.number(s, value);
    return self();
  }

  /** Log Page Attributes. */
  public int lpa() {
    return int32(LPA);
  }

  public IdentifyController lpa(int value) {
    LPA.number(s, value);
    return self();
  }

  /** Error Log Page Entries, zero-based. */
  public int elpe() {
    return int32(ELPE);
  }

  public IdentifyController elpe(int value) {
    ELPE.number(s, value);
    return self();
  }

  /** Number of Power States Support, zero-based. */
  public int npss() {
    return int32(NPSS);
  }

  public IdentifyController npss(int value) {
    NPSS.number(s, value);
    return self();
  }

  /** Admin Vendor Specific Command Configuration. */
  public int avscc() {
    return int32(AVSCC);
  }

  public IdentifyController avscc(int value) {
    AVSCC.number(s, value);
    return self();
  }

  /** Autonomous Power State Transition Attributes. */
  public int apsta() {
    return int32(APSTA);
  }

  public IdentifyController apsta(int value) {
    APSTA.number(s, value);
    return self();
  }

  /** Warning Composite Temperature Threshold, kelvin. */
  public int wctemp() {
    return int32(WCTEMP);
  }

  public IdentifyController wctemp(int value) {
    WCTEMP.number(s, value);
    return self();
  }

  /** Critical Composite Temperature Threshold, kelvin. */
  public int cctemp() {
    return int32(CCTEMP);
  }

  public IdentifyController cctemp(int value) {
    CCTEMP.number(s, value);
    return self();
  }

  /** Maximum Time for Firmware Activation, 100 ms units. */
  public int mtfa() {
    return int32(MTFA);
  }

  public IdentifyController mtfa(int value) {
    MTFA.number(s, value);
    return self();
  }

  /** Host Memory Buffer Preferred Size, 4 KiB units. */
  public long hmpre() {
    return int64(HMPRE);
  }

  public IdentifyController hmpre(long value) {
    HMPRE.number(s, value);
    return self();
  }

  /** Host Memory Buffer Minimum Size, 4 KiB units. */
  public long hmmin() {
    return int64(HMMIN);
  }

  public IdentifyController hmmin(long value) {
    HMMIN.number(s, value);
    return self();
  }

  /** Total NVM Capacity in bytes. */
  public BigInteger tnvmcap() {
    return TNVMCAP.big(s);
  }

  public IdentifyController tnvmcap(BigInteger value) {
    TNVMCAP.big(s, value);
    return self();
  }

  /** The low 64 bits of {@link #tnvmcap()}. */
  public long tnvmcapLow() {
    return int64(TNVMCAP);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public IdentifyController tnvmcapLow(long value) {
    TNVMCAP.number(s, value);
    return self();
  }

  /** Unallocated NVM Capacity in bytes. */
  public BigInteger unvmcap() {
    return UNVMCAP.big(s);
  }

  public IdentifyController unvmcap(BigInteger value) {
    UNVMCAP.big(s, value);
    return self();
  }

  /** The low 64 bits of {@link #unvmcap()}. */
  public long unvmcapLow() {
    return int64(UNVMCAP);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public IdentifyController unvmcapLow(long value) {
    UNVMCAP.number(s, value);
    return self();
  }

  /** Replay Protected Memory Block Support. */
  public int rpmbs() {
    return int32(RPMBS);
  }

  public IdentifyController rpmbs(int value) {
    RPMBS.number(s, Integer.toUnsignedLong(value));
    return self();
  }

  /** Extended Device Self-test Time, minutes. */
  public int edstt() {
    return int32(EDSTT);
  }

  public IdentifyController edstt(int value) {
    EDSTT.number(s, value);
    return self();
  }

  /** Device Self-test Options. */
  public int dsto() {
    return int32(DSTO);
  }

  public IdentifyController dsto(int value) {
    DSTO.number(s, value);
    return self();
  }

  /** Firmware Update Granularity, 4 KiB units; 255 no restriction. */
  public int fwug() {
    return int32(FWUG);
  }

  public IdentifyController fwug(int value) {
    FWUG.number(s, value);
    return self();
  }

  /** Keep Alive Support: granularity in 100 ms units, 0 unsupported. */
  public int kas() {
    return int32(KAS);
  }

  public IdentifyController kas(int value) {
    KAS.number(s, value);
    return self();
  }

  /** Host Controlled Thermal Management Attributes. */
  public int hctma() {
    return int32(HCTMA);
  }

  public IdentifyController hctma(int value) {
    HCTMA.number(s, value);
    return self();
  }

  /** Minimum Thermal Management Temperature, kelvin. */
  public int mntmt() {
    return int32(MNTMT);
  }

  public IdentifyController mntmt(int value) {
    MNTMT.number(s, value);
    return self();
  }

  /** Maximum Thermal Management Temperature, kelvin. */
  public int mxtmt() {
    return int32(MXTMT);
  }

  public IdentifyController mxtmt(int value) {
    MXTMT.number(s, value);
    return self();
  }

  /** Sanitize Capabilities. */
  public int sanicap() {
    return int32(SANICAP);
  }

  public IdentifyController sanicap(int value) {
    SANICAP.number(s, Integer.toUnsignedLong(value));
    return self();
  }

  /** Host Memory Buffer Minimum Descriptor Entry Size, 4 KiB units. */
  public long hmminds() {
    return int64(HMMINDS);
  }

  public IdentifyController hmminds(long value) {
    HMMINDS.number(s, value);
    return self();
  }

  /** Host Memory Maximum Descriptors Entries; 0 no limit. */
  public int hmmaxd() {
    return int32(HMMAXD);
  }

  public IdentifyController hmmaxd(int value) {
    HMMAXD.number(s, value);
    return self();
  }

  /** NVM Set Identifier Maximum. */
  public int nsetidmax() {
    return int32(NSETIDMAX);
  }

  public IdentifyController nsetidmax(int value) {
    NSETIDMAX.number(s, value);
    return self();
  }

  /** Endurance Group Identifier Maximum. */
  public int endgidmax() {
    return int32(ENDGIDMAX);
  }

  public IdentifyController endgidmax(int value) {
    ENDGIDMAX.number(s, value);
    return self();
  }

  /** ANA Transition Time, seconds. */
  public int anatt() {
    return int32(ANATT);
  }

  public IdentifyController anatt(int value) {
    ANATT.number(s, value);
    return self();
  }

  /** Asymmetric Namespace Access Capabilities. */
  public int anacap() {
    return int32(ANACAP);
  }

  public IdentifyController anacap(int value) {
    ANACAP.number(s, value);
    return self();
  }

  /** ANA Group Identifier Maximum. */
  public long anagrpmax() {
    return int64(ANAGRPMAX);
  }

  public IdentifyController anagrpmax(long value) {
    ANAGRPMAX.number(s, value);
    return self();
  }

  /** Number of ANA Group Identifiers. */
  public long nanagrpid() {
    return int64(NANAGRPID);
  }

  public IdentifyController nanagrpid(long value) {
    NANAGRPID.number(s, value);
    return self();
  }

  /** Persistent Event Log Size, 64 KiB units. */
  public long pels() {
    return int64(PELS);
  }

  public IdentifyController pels(long value) {
    PELS.number(s, value);
    return self();
  }

  /** Domain Identifier. */
  public int domainid() {
    return int32(DOMAINID);
  }

  public IdentifyController domainid(int value) {
    DOMAINID.number(s, value);
    return self();
  }

  /** Max Endurance Group Capacity in bytes. */
  public BigInteger megcap() {
    return MEGCAP.big(s);
  }

  public IdentifyController megcap(BigInteger value) {
    MEGCAP.big(s, value);
    return self();
  }

  /** The low 64 bits of {@link #megcap()}. */
  public long megcapLow() {
    return int64(MEGCAP);
  }

  /** Sets the low 64 bits, the high ones stay. */
  public IdentifyController megcapLow(long value) {
    MEGCAP.number(s, value);
    return self();
  }
}
