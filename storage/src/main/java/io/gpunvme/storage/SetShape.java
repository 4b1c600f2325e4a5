package io.gpunvme.storage;

import io.gpunvme.base.InvalidRequestException;
import java.util.List;

/**
 * The shape of a set.
 *
 * @param unit bytes on one member before the next member's turn, a power of two; 0: all members
 *     hold the same data
 */
public record SetShape(long unit) {
  static final String STRIPE = "stripe:";
  static final String REPLICA = "replica:";

  private static final long DEFAULT_UNIT = 1 << 20;
  private static final long LEAST_UNIT = 512;
  private static final long MOST_UNIT = 1L << 40;

  /**
   * Checks.
   *
   * @throws InvalidRequestException if the unit is not a power of two, or not between 512 bytes and
   *     1 TiB
   */
  public SetShape {
    if (unit != 0 && (Long.bitCount(unit) != 1 || unit < LEAST_UNIT || unit > MOST_UNIT)) {
      throw new InvalidRequestException(
          "a stripe unit of " + unit + " bytes is not a power of two from 512 bytes to 1 TiB");
    }
  }

  /** The data is striped over the members. */
  public static SetShape striped(long unit) {
    if (unit == 0) {
      throw new InvalidRequestException("a stripe unit of 0 bytes");
    }
    return new SetShape(unit);
  }

  /** The data is striped over the members, in units of 1 MiB. */
  public static SetShape striped() {
    return new SetShape(DEFAULT_UNIT);
  }

  /** All members hold the same data. */
  public static SetShape replicated() {
    return new SetShape(0);
  }

  /** Whether the data is striped over the members. */
  public boolean isStriped() {
    return unit != 0;
  }

  /** An address of such a set. */
  String text(List<String> members) {
    String all = String.join(",", members);
    return isStriped() ? STRIPE + all + ";unit=" + unit : REPLICA + all;
  }
}
