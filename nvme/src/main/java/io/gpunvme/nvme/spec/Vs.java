package io.gpunvme.nvme.spec;

import java.util.List;

/**
 * VS, the version of the specification the controller follows (Base 2.0, 3.1.3.2).
 *
 * @param value the register as read
 */
public record Vs(int value) implements Structure {
  private static final BitField MJR = new BitField("MJR", 16, 16, "Major Version Number");
  private static final BitField MNR = new BitField("MNR", 8, 8, "Minor Version Number");
  private static final BitField TER = new BitField("TER", 0, 8, "Tertiary Version Number");
  private static final BitField[] FIELDS = {MJR, MNR, TER};

  /** 1.2. */
  public static final Vs V1_2 = of(1, 2, 0);

  /** 1.3. */
  public static final Vs V1_3 = of(1, 3, 0);

  /** 1.4. */
  public static final Vs V1_4 = of(1, 4, 0);

  /** 2.0. */
  public static final Vs V2_0 = of(2, 0, 0);

  /** Major Version Number. */
  public int major() {
    return MJR.get(value);
  }

  /** Minor Version Number. */
  public int minor() {
    return MNR.get(value);
  }

  /** Tertiary Version Number. */
  public int tertiary() {
    return TER.get(value);
  }

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
    return major() + "." + minor() + "." + tertiary();
  }

  @Override
  public List<FieldValue> fields() {
    return BitField.decodeAll(value, FIELDS);
  }
}
