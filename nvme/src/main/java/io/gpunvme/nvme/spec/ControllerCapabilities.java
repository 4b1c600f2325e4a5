package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Identify Controller, bytes 255:0: who the controller is and what it can do (Base 2.0, 5.17.2.1).
 */
abstract sealed class ControllerCapabilities extends View permits ControllerAdminAttributes {
  private static final FieldTable TABLE = new FieldTable();

  private static final Field VID = TABLE.flags("VID", 0, 2, "PCI Vendor ID");
  private static final Field SSVID = TABLE.flags("SSVID", 2, 2, "PCI Subsystem Vendor ID");
  private static final Field SN = TABLE.text("SN", 4, 20, "Serial Number");
  private static final Field MN = TABLE.text("MN", 24, 40, "Model Number");
  private static final Field FR = TABLE.text("FR", 64, 8, "Firmware Revision");
  private static final Field RAB =
      TABLE.number("RAB", 72, 1, "Recommended Arbitration Burst, power of two");
  private static final Field IEEE = TABLE.flags("IEEE", 73, 3, "IEEE OUI Identifier");
  private static final Field CMIC =
      TABLE.flags("CMIC", 76, 1, "Controller Multi-Path I/O and Namespace Sharing Capabilities");
  private static final Field MDTS =
      TABLE.number(
          "MDTS",
          77,
          1,
          "Maximum Data Transfer Size, power of two of the minimum page size; 0 no limit");
  private static final Field CNTLID = TABLE.number("CNTLID", 78, 2, "Controller ID");
  private static final Field VER = TABLE.flags("VER", 80, 4, "Version, as register VS");
  private static final Field RTD3R =
      TABLE.number("RTD3R", 84, 4, "RTD3 Resume Latency in microseconds");
  private static final Field RTD3E =
      TABLE.number("RTD3E", 88, 4, "RTD3 Entry Latency in microseconds");
  private static final Field OAES =
      TABLE.flags("OAES", 92, 4, "Optional Asynchronous Events Supported");
  private static final Field CTRATT = TABLE.flags("CTRATT", 96, 4, "Controller Attributes");
  private static final Field RRLS = TABLE.flags("RRLS", 100, 2, "Read Recovery Levels Supported");
  private static final Field CNTRLTYPE =
      TABLE.number(
          "CNTRLTYPE",
          111,
          1,
          "Controller Type: 0 not reported, 1 I/O, 2 discovery, 3 administrative");
  private static final Field FGUID =
      TABLE.bytes("FGUID", 112, 16, "FRU Globally Unique Identifier");
  private static final Field CRDT1 =
      TABLE.number("CRDT1", 128, 2, "Command Retry Delay Time 1, 100 ms units");
  private static final Field CRDT2 =
      TABLE.number("CRDT2", 130, 2, "Command Retry Delay Time 2, 100 ms units");
  private static final Field CRDT3 =
      TABLE.number("CRDT3", 132, 2, "Command Retry Delay Time 3, 100 ms units");
  private static final Field NVMSR = TABLE.flags("NVMSR", 253, 1, "NVM Subsystem Report");
  private static final Field VWCI = TABLE.flags("VWCI", 254, 1, "VPD Write Cycle Information");
  private static final Field MEC = TABLE.flags("MEC", 255, 1, "Management Endpoint Capabilities");

  ControllerCapabilities(MemorySegment segment) {
    super(segment, IdentifyController.SIZE);
  }

  abstract IdentifyController self();

  @Override
  List<Field> table() {
    return TABLE.fields();
  }

  /** PCI Vendor ID. */
  public int vid() {
    return int32(VID);
  }

  public IdentifyController vid(int value) {
    VID.number(s, value);
    return self();
  }

  /** PCI Subsystem Vendor ID. */
  public int ssvid() {
    return int32(SSVID);
  }

  public IdentifyController ssvid(int value) {
    SSVID.number(s, value);
    return self();
  }

  /** Serial Number. */
  public String sn() {
    return SN.text(s);
  }

  public IdentifyController sn(String value) {
    SN.text(s, value, ' ');
    return self();
  }

  /** Model Number. */
  public String mn() {
    return MN.text(s);
  }

  public IdentifyController mn(String value) {
    MN.text(s, value, ' ');
    return self();
  }

  /** Firmware Revision. */
  public String fr() {
    return FR.text(s);
  }

  public IdentifyController fr(String value) {
    FR.text(s, value, ' ');
    return self();
  }

  /** Recommended Arbitration Burst, power of two. */
  public int rab() {
    return int32(RAB);
  }

  public IdentifyController rab(int value) {
    RAB.number(s, value);
    return self();
  }

  /** IEEE OUI Identifier. */
  public int ieee() {
    return int32(IEEE);
  }

  public IdentifyController ieee(int value) {
    IEEE.number(s, value);
    return self();
  }

  /** Controller Multi-Path I/O and Namespace Sharing Capabilities. */
  public int cmic() {
    return int32(CMIC);
  }

  public IdentifyController cmic(int value) {
    CMIC.number(s, value);
    return self();
  }

  /** Maximum Data Transfer Size, power of two of the minimum page size; 0 no limit. */
  public int mdts() {
    return int32(MDTS);
  }

  public IdentifyController mdts(int value) {
    MDTS.number(s, value);
    return self();
  }

  /** Controller ID. */
  public int cntlid() {
    return int32(CNTLID);
  }

  public IdentifyController cntlid(int value) {
    CNTLID.number(s, value);
    return self();
  }

  /** Version, as register VS. */
  public int ver() {
    return int32(VER);
  }

  public IdentifyController ver(int value) {
    VER.number(s, Integer.toUnsignedLong(value));
    return self();
  }

  /** RTD3 Resume Latency in microseconds. */
  public long rtd3r() {
    return int64(RTD3R);
  }

  public IdentifyController rtd3r(long value) {
    RTD3R.number(s, value);
    return self();
  }

  /** RTD3 Entry Latency in microseconds. */
  public long rtd3e() {
    return int64(RTD3E);
  }

  public IdentifyController rtd3e(long value) {
    RTD3E.number(s, value);
    return self();
  }

  /** Optional Asynchronous Events Supported. */
  public int oaes() {
    return int32(OAES);
  }

  public IdentifyController oaes(int value) {
    OAES.number(s, Integer.toUnsignedLong(value));
    return self();
  }

  /** Controller Attributes. */
  public int ctratt() {
    return int32(CTRATT);
  }

  public IdentifyController ctratt(int value) {
    CTRATT.number(s, Integer.toUnsignedLong(value));
    return self();
  }

  /** Read Recovery Levels Supported. */
  public int rrls() {
    return int32(RRLS);
  }

  public IdentifyController rrls(int value) {
    RRLS.number(s, value);
    return self();
  }

  /** Controller Type: 0 not reported, 1 I/O, 2 discovery, 3 administrative. */
  public int cntrltype() {
    return int32(CNTRLTYPE);
  }

  public IdentifyController cntrltype(int value) {
    CNTRLTYPE.number(s, value);
    return self();
  }

  /** FRU Globally Unique Identifier. */
  public byte[] fguid() {
    return FGUID.bytes(s);
  }

  public IdentifyController fguid(byte[] value) {
    FGUID.bytes(s, value);
    return self();
  }

  /** Command Retry Delay Time 1, 100 ms units. */
  public int crdt1() {
    return int32(CRDT1);
  }

  public IdentifyController crdt1(int value) {
    CRDT1.number(s, value);
    return self();
  }

  /** Command Retry Delay Time 2, 100 ms units. */
  public int crdt2() {
    return int32(CRDT2);
  }

  public IdentifyController crdt2(int value) {
    CRDT2.number(s, value);
    return self();
  }

  /** Command Retry Delay Time 3, 100 ms units. */
  public int crdt3() {
    return int32(CRDT3);
  }

  public IdentifyController crdt3(int value) {
    CRDT3.number(s, value);
    return self();
  }

  /** NVM Subsystem Report. */
  public int nvmsr() {
    return int32(NVMSR);
  }

  public IdentifyController nvmsr(int value) {
    NVMSR.number(s, value);
    return self();
  }

  /** VPD Write Cycle Information. */
  public int vwci() {
    return int32(VWCI);
  }

  public IdentifyController vwci(int value) {
    VWCI.number(s, value);
    return self();
  }

  /** Management Endpoint Capabilities. */
  public int mec() {
    return int32(MEC);
  }

  public IdentifyController mec(int value) {
    MEC.number(s, value);
    return self();
  }
}
