package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CRTO, Controller Ready Timeouts, in units of 500 ms (Base 2.0, 3.1.3.21).
 *
 * @param value the register as read
 */
public record Crto(int value) implements Structure {
  private static final BitField CRWMT =
      new BitField("CRWMT", 0, 16, "Controller Ready With Media Timeout, 500 ms units");
  private static final BitField CRIMT =
      new BitField("CRIMT", 16, 16, "Controller Ready Independent of Media Timeout, 500 ms units");
  private static final BitField[] FIELDS = {CRWMT, CRIMT};

  /** Controller Ready With Media Timeout, 500 ms units. */
  public int crwmt() {
    return CRWMT.get(value);
  }

  /** Returns a copy with CRWMT replaced. */
  public Crto withCrwmt(int crwmt) {
    return new Crto(CRWMT.with(value, crwmt));
  }

  /** Controller Ready Independent of Media Timeout, 500 ms units. */
  public int crimt() {
    return CRIMT.get(value);
  }

  /** Returns a copy with CRIMT replaced. */
  public Crto withCrimt(int crimt) {
    return new Crto(CRIMT.with(value, crimt));
  }

  @Override
  public List<FieldValue> fields() {
    return BitField.decodeAll(value, FIELDS);
  }
}
