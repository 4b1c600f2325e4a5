package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CSTS, Controller Status (Base 2.0, 3.1.3.6). All ones means that the device does not answer at
 * all.
 *
 * @param value the register as read
 */
public record Csts(int value) implements Structure {
  /** Bit of {@link #rdy()}. */
  public static final int RDY = 1;

  /** Bit of {@link #cfs()}. */
  public static final int CFS = 1 << 1;

  /** Bit of {@link #nssro()}. */
  public static final int NSSRO = 1 << 4;

  /** Bit of {@link #pp()}. */
  public static final int PP = 1 << 5;

  /** Bit of {@link #st()}. */
  public static final int ST = 1 << 6;

  /** What reads return when the device is gone. */
  public static final int GONE = 0xFFFF_FFFF;

  /** {@link #shst()}: normal operation. */
  public static final int SHST_NORMAL = 0;

  /** {@link #shst()}: shutdown in progress. */
  public static final int SHST_OCCURRING = 1;

  /** {@link #shst()}: shutdown complete. */
  public static final int SHST_COMPLETE = 2;

  private static final BitField RDY_FIELD = new BitField("RDY", 0, 1, "Ready");
  private static final BitField CFS_FIELD = new BitField("CFS", 1, 1, "Controller Fatal Status");
  private static final BitField SHST_FIELD =
      new BitField("SHST", 2, 2, "Shutdown Status: 0 normal operation, 1 in progress, 2 complete");
  private static final BitField NSSRO_FIELD =
      new BitField("NSSRO", 4, 1, "NVM Subsystem Reset Occurred; write one to clear");
  private static final BitField PP_FIELD = new BitField("PP", 5, 1, "Processing Paused");
  private static final BitField ST_FIELD =
      new BitField("ST", 6, 1, "Shutdown Type: 0 controller, 1 NVM subsystem");
  private static final BitField[] FIELDS = {
    RDY_FIELD, CFS_FIELD, SHST_FIELD, NSSRO_FIELD, PP_FIELD, ST_FIELD
  };

  /** Ready. */
  public boolean rdy() {
    return RDY_FIELD.get(value) != 0;
  }

  /** Returns a copy with RDY replaced. */
  public Csts withRdy(boolean rdy) {
    return new Csts(RDY_FIELD.with(value, rdy));
  }

  /** Controller Fatal Status. */
  public boolean cfs() {
    return CFS_FIELD.get(value) != 0;
  }

  /** Returns a copy with CFS replaced. */
  public Csts withCfs(boolean cfs) {
    return new Csts(CFS_FIELD.with(value, cfs));
  }

  /** Shutdown Status: 0 normal operation, 1 in progress, 2 complete. */
  public int shst() {
    return SHST_FIELD.get(value);
  }

  /** Returns a copy with SHST replaced. */
  public Csts withShst(int shst) {
    return new Csts(SHST_FIELD.with(value, shst));
  }

  /** NVM Subsystem Reset Occurred; write one to clear. */
  public boolean nssro() {
    return NSSRO_FIELD.get(value) != 0;
  }

  /** Returns a copy with NSSRO replaced. */
  public Csts withNssro(boolean nssro) {
    return new Csts(NSSRO_FIELD.with(value, nssro));
  }

  /** Processing Paused. */
  public boolean pp() {
    return PP_FIELD.get(value) != 0;
  }

  /** Returns a copy with PP replaced. */
  public Csts withPp(boolean pp) {
    return new Csts(PP_FIELD.with(value, pp));
  }

  /** Shutdown Type: 0 controller, 1 NVM subsystem. */
  public boolean st() {
    return ST_FIELD.get(value) != 0;
  }

  /** Returns a copy with ST replaced. */
  public Csts withSt(boolean st) {
    return new Csts(ST_FIELD.with(value, st));
  }

  /** Whether the register reads as all ones: the device is gone. */
  public boolean gone() {
    return value == GONE;
  }

  @Override
  public List<FieldValue> fields() {
    return BitField.decodeAll(value, FIELDS);
  }
}
