package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * NSSR, NVM Subsystem Reset (Base 2.0, 3.1.3.7).
 *
 * @param value the register as read
 */
public record Nssr(int value) implements Structure {
  private static final BitField NSSRC = new BitField("NSSRC", 0, 32, "NVM Subsystem Reset Control");
  private static final BitField[] FIELDS = {NSSRC};

  /** NVM Subsystem Reset Control. */
  public int nssrc() {
    return NSSRC.get(value);
  }

  /** Whether the value asks for a reset: {@link Registers#NSSR_MAGIC}. */
  public boolean requestsReset() {
    return value == Registers.NSSR_MAGIC;
  }

  @Override
  public List<FieldValue> fields() {
    return BitField.decodeAll(value, FIELDS);
  }
}
