package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * CRTO, Controller Ready Timeouts, in units of 500 ms (Base 2.0, 3.1.3.21).
 *
 * @param value the register as read
 */
public record Crto(int value) implements Register<Crto> {
  private static final BitFieldTable TABLE = new BitFieldTable();

  public static final BitField CRWMT =
      TABLE.field("CRWMT", 0, 16, "Controller Ready With Media Timeout, 500 ms units");
  public static final BitField CRIMT =
      TABLE.field("CRIMT", 16, 16, "Controller Ready Independent of Media Timeout, 500 ms units");

  @Override
  public long bits() {
    return value;
  }

  @Override
  public Crto withBits(long bits) {
    return new Crto((int) bits);
  }

  @Override
  public List<BitField> layout() {
    return TABLE.fields();
  }
}
