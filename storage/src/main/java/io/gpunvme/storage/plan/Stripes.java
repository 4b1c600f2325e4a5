package io.gpunvme.storage.plan;

import io.gpunvme.base.InvalidRequestException;

/**
 * A source that lies on several members in turns, as RAID 0 does: unit 0 on member 0, unit 1 on
 * member 1, and around again.
 *
 * @param members how many, 1 or more
 * @param unit bytes on one member before the next one's turn; of no effect with one member
 */
public record Stripes(int members, long unit) {
  /** A source in one place. */
  public static final Stripes NONE = new Stripes(1, 1);

  /**
   * Checks.
   *
   * @throws InvalidRequestException if either is below 1, or a whole stripe has 2^63 bytes or more
   */
  public Stripes {
    if (members < 1 || unit < 1 || unit > Long.MAX_VALUE / members) {
      throw new InvalidRequestException(
          "stripes of " + members + " members with " + unit + " bytes each are not possible");
    }
  }

  /** On which member a byte of the source lies. */
  public int member(long offset) {
    return (int) (offset / unit % members);
  }

  /** Where on its member a byte of the source lies. */
  public long memberOffset(long offset) {
    return offset / unit / members * unit + offset % unit;
  }

  /** Which byte of the source lies there: the inverse of the two above. */
  public long offset(int member, long memberOffset) {
    return (memberOffset / unit * members + member) * unit + memberOffset % unit;
  }

  /** How many of a source's bytes a member has. */
  public long memberSize(int member, long sourceSize) {
    long stripe = unit * members;
    return sourceSize / stripe * unit + Math.clamp(sourceSize % stripe - member * unit, 0L, unit);
  }
}
