package io.gpunvme.nvme.spec;

import java.lang.foreign.MemorySegment;

/** Power State Descriptor: 32 bytes, inside Identify Controller (Base 2.0, 5.17.2.1). */
public final class PowerStateDescriptor extends View<PowerStateDescriptor> {
  /** Bytes of the structure. */
  public static final int SIZE = 32;

  /** {@link #FLAGS} bit 0, Max Power Scale: MP is in units of 0.0001 W. */
  public static final int MXPS = 1;

  /** {@link #FLAGS} bit 1, Non-Operational State: no I/O is processed. */
  public static final int NOPS = 1 << 1;

  private static final FieldTable TABLE = new FieldTable();

  public static final Field MP =
      TABLE.number("MP", 0, 2, "Maximum Power in centiwatts, or in units of 0.0001 W with MXPS");
  public static final Field FLAGS =
      TABLE.flags("FLAGS", 3, 1, "bit 0 MXPS: scale of MP, bit 1 NOPS: non-operational state");
  public static final Field ENLAT = TABLE.number("ENLAT", 4, 4, "Entry Latency in microseconds");
  public static final Field EXLAT = TABLE.number("EXLAT", 8, 4, "Exit Latency in microseconds");
  public static final Field RRT =
      TABLE.number("RRT", 12, 1, "Relative Read Throughput, lower is better");
  public static final Field RRL =
      TABLE.number("RRL", 13, 1, "Relative Read Latency, lower is better");
  public static final Field RWT =
      TABLE.number("RWT", 14, 1, "Relative Write Throughput, lower is better");
  public static final Field RWL =
      TABLE.number("RWL", 15, 1, "Relative Write Latency, lower is better");
  public static final Field IDLP = TABLE.number("IDLP", 16, 2, "Idle Power, in the scale of IPS");
  public static final Field IPS = TABLE.flags("IPS", 18, 1, "Idle Power Scale in bits 7:6");
  public static final Field ACTP = TABLE.number("ACTP", 20, 2, "Active Power, in the scale of APS");
  public static final Field APWS =
      TABLE.flags("APWS", 22, 1, "Active Power Workload in bits 2:0 and Scale in bits 7:6");

  /**
   * Wraps the first 32 bytes of {@code segment}.
   *
   * @throws IllegalArgumentException if the segment is shorter
   */
  public PowerStateDescriptor(MemorySegment segment) {
    super(segment, SIZE, TABLE);
  }
}
