package io.gpunvme.storage.plan;

import io.gpunvme.base.InvalidRequestException;

/**
 * A source that is striped over several members, as in RAID 0: unit 0 on member 0, unit 1 on member
 * 1, and around again.
 *
 * @param members how many, 1 or more
 * @param unit bytes on one member before the next member's turn; without effect for one member
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

  /** The member of a byte of the source. */
  public int member(long offset) {
    return (int) (offset / unit % members);
  }

  /** The offset of a byte of the source on its member. */
  public long memberOffset(long offset) {
    return offset / unit / members * unit + offset % unit;
  }

  /** The byte of the source at a member's offset: the inverse of the two above. */
  public long offset(int member, long memberOffset) {
    return (memberOffset / unit * members + member) * unit + memberOffset % unit;
  }

  /** The number of a source's bytes on a member. */
  public long memberSize(int member, long sourceSize) {
    long stripe = unit * members;
    return sourceSize / stripe * unit + Math.clamp(sourceSize % stripe - member * unit, 0L, unit);
  }
}
