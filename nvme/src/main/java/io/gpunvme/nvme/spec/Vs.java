package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * VS, the version of the specification the controller follows (Base 2.0, 3.1.3.2).
 *
 * @param value the register as read
 */
public record Vs(int value) implements Register<Vs> {
  private static final BitFieldTable TABLE = new BitFieldTable();

  public static final BitField MJR = TABLE.field("MJR", 16, 16, "Major Version Number");
  public static final BitField MNR = TABLE.field("MNR", 8, 8, "Minor Version Number");
  public static final BitField TER = TABLE.field("TER", 0, 8, "Tertiary Version Number");

  /** 1.2. */
  public static final Vs V1_2 = of(1, 2, 0);

  /** 1.3. */
  public static final Vs V1_3 = of(1, 3, 0);

  /** 1.4. */
  public static final Vs V1_4 = of(1, 4, 0);

  /** 2.0. */
  public static final Vs V2_0 = of(2, 0, 0);

  /** Returns a version; each number is checked against its field. */
  public static Vs of(int major, int minor, int tertiary) {
    return new Vs(MJR.with(MNR.with(TER.with(0, tertiary), minor), major));
  }

  /** Whether this is {@code other} or newer. */
  public boolean isAtLeast(Vs other) {
    return Integer.compareUnsigned(value, other.value) >= 0;
  }

  /** Returns for example {@code 1.4.0}. */
  @Override
  public String toString() {
    return get(MJR) + "." + get(MNR) + "." + get(TER);
  }

  @Override
  public long bits() {
    return value;
  }

  @Override
  public Vs withBits(long bits) {
    return new Vs((int) bits);
  }

  @Override
  public List<BitField> layout() {
    return TABLE.fields();
  }
}
