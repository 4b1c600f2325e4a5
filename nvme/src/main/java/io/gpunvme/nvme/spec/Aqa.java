package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * AQA, Admin Queue Attributes: sizes of the admin queues in entries, zero-based (Base 2.0,
 * 3.1.3.8).
 *
 * @param value the register as read
 */
public record Aqa(int value) implements Structure {
  private static final BitField ASQS =
      new BitField("ASQS", 0, 12, "Admin Submission Queue Size, zero-based");
  private static final BitField ACQS =
      new BitField("ACQS", 16, 12, "Admin Completion Queue Size, zero-based");
  private static final BitField[] FIELDS = {ASQS, ACQS};

  /** Admin Submission Queue Size, zero-based. */
  public int asqs() {
    return ASQS.get(value);
  }

  /** Admin Completion Queue Size, zero-based. */
  public int acqs() {
    return ACQS.get(value);
  }

  /** Returns the register for two zero-based sizes, each 0..4095. */
  public static Aqa of(int asqs, int acqs) {
    return new Aqa(ASQS.with(ACQS.with(0, acqs), asqs));
  }

  @Override
  public List<FieldValue> fields() {
    return BitField.decodeAll(value, FIELDS);
  }
}
