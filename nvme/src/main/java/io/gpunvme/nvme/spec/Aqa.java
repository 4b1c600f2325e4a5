package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * AQA, Admin Queue Attributes: sizes of the admin queues in entries, zero-based (Base 2.0,
 * 3.1.3.8).
 *
 * @param value the register as read
 */
public record Aqa(int value) implements Register<Aqa> {
  private static final BitFieldTable TABLE = new BitFieldTable();

  public static final BitField ASQS =
      TABLE.field("ASQS", 0, 12, "Admin Submission Queue Size, zero-based");
  public static final BitField ACQS =
      TABLE.field("ACQS", 16, 12, "Admin Completion Queue Size, zero-based");

  /** Returns the register for two zero-based sizes, each 0..4095. */
  public static Aqa of(int asqs, int acqs) {
    return new Aqa(ASQS.with(ACQS.with(0, acqs), asqs));
  }

  @Override
  public long bits() {
    return value;
  }

  @Override
  public Aqa withBits(long bits) {
    return new Aqa((int) bits);
  }

  @Override
  public List<BitField> layout() {
    return TABLE.fields();
  }
}
