package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;
import java.util.List;

/**
 * Power State Descriptor: 32 bytes, inside Identify Controller (Base 2.0, 5.17.2.1). Setters take
 * the unit of the getter and return this view.
 */
public final class PowerStateDescriptor extends View {
  /** Bytes of the structure. */
  public static final int SIZE = 32;

  /** {@link #flags()} bit 0, Max Power Scale: MP is in units of 0.0001 W. */
  public static final int MXPS = 1;

  /** {@link #flags()} bit 1, Non-Operational State: no I/O is processed. */
  public static final int NOPS = 1 << 1;

  private static final FieldTable TABLE = new FieldTable();

  private static final Field MP =
      TABLE.number("MP", 0, 2, "Maximum Power in centiwatts, or in units of 0.0001 W with MXPS");
  private static final Field FLAGS =
      TABLE.flags("FLAGS", 3, 1, "bit 0 MXPS: scale of MP, bit 1 NOPS: non-operational state");
  private static final Field ENLAT = TABLE.number("ENLAT", 4, 4, "Entry Latency in microseconds");
  private static final Field EXLAT = TABLE.number("EXLAT", 8, 4, "Exit Latency in microseconds");
  private static final Field RRT =
      TABLE.number("RRT", 12, 1, "Relative Read Throughput, lower is better");
  private static final Field RRL =
      TABLE.number("RRL", 13, 1, "Relative Read Latency, lower is better");
  private static final Field RWT =
      TABLE.number("RWT", 14, 1, "Relative Write Throughput, lower is better");
  private static final Field RWL =
      TABLE.number("RWL", 15, 1, "Relative Write Latency, lower is better");
  private static final Field IDLP = TABLE.number("IDLP", 16, 2, "Idle Power, in the scale of IPS");
  private static final Field IPS = TABLE.flags("IPS", 18, 1, "Idle Power Scale in bits 7:6");
  private static final Field ACTP =
      TABLE.number("ACTP", 20, 2, "Active Power, in the scale of APS");
  private static final Field APWS =
      TABLE.flags("APWS", 22, 1, "Active Power Workload in bits 2:0 and Scale in bits 7:6");

  /**
   * Wraps the first 32 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public PowerStateDescriptor(MemorySegment segment) {
    super(segment, SIZE);
  }

  @Override
  List<Field> table() {
    return TABLE.fields();
  }

  /** Maximum Power in centiwatts, or in units of 0.0001 W with MXPS. */
  public int mp() {
    return int32(MP);
  }

  public PowerStateDescriptor mp(int value) {
    MP.number(s, value);
    return this;
  }

  /** MXPS in bit 0 and NOPS in bit 1. */
  public int flags() {
    return int32(FLAGS);
  }

  public PowerStateDescriptor flags(int value) {
    FLAGS.number(s, value);
    return this;
  }

  /** Entry Latency in microseconds. */
  public long enlat() {
    return int64(ENLAT);
  }

  public PowerStateDescriptor enlat(long value) {
    ENLAT.number(s, value);
    return this;
  }

  /** Exit Latency in microseconds. */
  public long exlat() {
    return int64(EXLAT);
  }

  public PowerStateDescriptor exlat(long value) {
    EXLAT.number(s, value);
    return this;
  }

  /** Relative Read Throughput, lower is better. */
  public int rrt() {
    return int32(RRT);
  }

  public PowerStateDescriptor rrt(int value) {
    RRT.number(s, value);
    return this;
  }

  /** Relative Read Latency, lower is better. */
  public int rrl() {
    return int32(RRL);
  }

  public PowerStateDescriptor rrl(int value) {
    RRL.number(s, value);
    return this;
  }

  /** Relative Write Throughput, lower is better. */
  public int rwt() {
    return int32(RWT);
  }

  public PowerStateDescriptor rwt(int value) {
    RWT.number(s, value);
    return this;
  }

  /** Relative Write Latency, lower is better. */
  public int rwl() {
    return int32(RWL);
  }

  public PowerStateDescriptor rwl(int value) {
    RWL.number(s, value);
    return this;
  }

  /** Idle Power, in the scale of IPS. */
  public int idlp() {
    return int32(IDLP);
  }

  public PowerStateDescriptor idlp(int value) {
    IDLP.number(s, value);
    return this;
  }

  /** Idle Power Scale in bits 7:6. */
  public int ips() {
    return int32(IPS);
  }

  public PowerStateDescriptor ips(int value) {
    IPS.number(s, value);
    return this;
  }

  /** Active Power, in the scale of APS. */
  public int actp() {
    return int32(ACTP);
  }

  public PowerStateDescriptor actp(int value) {
    ACTP.number(s, value);
    return this;
  }

  /** Active Power Workload in bits 2:0 and Scale in bits 7:6. */
  public int apws() {
    return int32(APWS);
  }

  public PowerStateDescriptor apws(int value) {
    APWS.number(s, value);
    return this;
  }
}
