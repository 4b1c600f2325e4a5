package io.gpunvme.models.raw;

/**
 * The striped set that a raw model was written to: opened in another shape, its bytes are in other
 * places.
 *
 * @param members how many; 0: it was none
 * @param unit bytes on one member before the next one's turn; 0 if it was none
 */
public record Stripe(int members, long unit) {
  /** No striped set. */
  public static final Stripe NONE = new Stripe(0, 0);

  private static final long LEAST_UNIT = 512;

  boolean isPossible() {
    return equals(NONE) || members >= 2 && Long.bitCount(unit) == 1 && unit >= LEAST_UNIT;
  }

  @Override
  public String toString() {
    return members == 0
        ? "no striped set"
        : "a striped set of %d members in units of %d bytes".formatted(members, unit);
  }
}
