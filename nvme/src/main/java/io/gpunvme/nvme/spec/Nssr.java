package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * NSSR, NVM Subsystem Reset (Base 2.0, 3.1.3.7).
 *
 * @param value the register as read
 */
public record Nssr(int value) implements Register<Nssr> {
  private static final BitFieldTable TABLE = new BitFieldTable();

  public static final BitField NSSRC = TABLE.field("NSSRC", 0, 32, "NVM Subsystem Reset Control");

  /** Whether the value asks for a reset: {@link Registers#NSSR_MAGIC}. */
  public boolean requestsReset() {
    return value == Registers.NSSR_MAGIC;
  }

  @Override
  public long bits() {
    return value;
  }

  @Override
  public Nssr withBits(long bits) {
    return new Nssr((int) bits);
  }

  @Override
  public List<BitField> layout() {
    return TABLE.fields();
  }
}
