package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CSTS, Controller Status (Base 2.0, 3.1.3.6). All ones means that the device does not answer at
 * all.
 *
 * @param value the register as read
 */
public record Csts(int value) implements Register<Csts> {
  /** What reads return when the device is gone. */
  public static final int GONE = 0xFFFF_FFFF;

  /** {@link #SHST}: normal operation. */
  public static final int SHST_NORMAL = 0;

  /** {@link #SHST}: shutdown in progress. */
  public static final int SHST_OCCURRING = 1;

  /** {@link #SHST}: shutdown complete. */
  public static final int SHST_COMPLETE = 2;

  private static final BitFieldTable TABLE = new BitFieldTable();

  public static final BitField RDY = TABLE.field("RDY", 0, 1, "Ready");
  public static final BitField CFS = TABLE.field("CFS", 1, 1, "Controller Fatal Status");
  public static final BitField SHST =
      TABLE.field("SHST", 2, 2, "Shutdown Status: 0 normal operation, 1 in progress, 2 complete");
  public static final BitField NSSRO =
      TABLE.field("NSSRO", 4, 1, "NVM Subsystem Reset Occurred; write one to clear");
  public static final BitField PP = TABLE.field("PP", 5, 1, "Processing Paused");
  public static final BitField ST =
      TABLE.field("ST", 6, 1, "Shutdown Type: 0 controller, 1 NVM subsystem");

  /** Whether the register reads as all ones: the device is gone. */
  public boolean gone() {
    return value == GONE;
  }

  @Override
  public long bits() {
    return value;
  }

  @Override
  public Csts withBits(long bits) {
    return new Csts((int) bits);
  }

  @Override
  public List<BitField> layout() {
    return TABLE.fields();
  }
}
