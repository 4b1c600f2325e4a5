package io.gpunvme.storage.plan;

import io.gpunvme.base.InvalidRequestException;

/**
 * Plans reads of many ranges.
 *
 * <p>Bytes are read once, even if several ranges need them. Blocks that are at most {@link
 * PlanOptions#gap()} apart are read together, and their bytes are copied to their places: such an
 * I/O is <em>staged</em>. Whole blocks are read straight to their place if only one range needs
 * them, they lie aligned in the target, and their run is longer than the gap or has no other blocks
 * nearby: such an I/O is <em>direct</em>. So a long unaligned range becomes a staged block at
 * either end and direct I/Os between them.
 */
public final class Planner {
  private Planner() {}

  /**
   * Plans. The same input gives the same plan. Time grows with ranges, I/Os and pieces; a million
   * ranges take some tenths of a second at most.
   *
   * @throws InvalidRequestException if a range goes past the source, two ranges overlap in a
   *     target, or the plan would be longer than 2^24 I/Os or pieces
   */
  public static Plan plan(Ranges ranges, PlanOptions options) {
    checkBounds(ranges, options.sourceSize());
    checkTargets(ranges);
    Runs runs = Runs.of(ranges, options);
    Split split = new Split(runs, options);
    return new Assembly(ranges, runs, split, options).plan();
  }

  private static void checkBounds(Ranges ranges, long sourceSize) {
    long left = Long.MAX_VALUE;
    for (int i = 0; i < ranges.size(); i++) {
      if (ranges.offset(i) > sourceSize - ranges.length(i)) {
        throw new InvalidRequestException(
            ranges.describe(i) + " goes past the source's end, " + sourceSize);
      }
      left -= ranges.length(i);
      if (left < 0) {
        throw new InvalidRequestException("the ranges together have 2^63 bytes or more");
      }
    }
  }

  /** Sorted by target and place, only neighbours can overlap first. */
  private static void checkTargets(Ranges ranges) {
    long[] keys = new long[ranges.size()];
    for (int i = 0; i < keys.length; i++) {
      keys[i] = ranges.targetOffset(i);
    }
    int[] order = IndexSort.by(keys, IndexSort.identity(keys.length));
    for (int i = 0; i < keys.length; i++) {
      keys[i] = ranges.target(i);
    }
    order = IndexSort.by(keys, order);
    int before = -1;
    for (int i : order) {
      if (ranges.length(i) == 0) {
        continue;
      }
      if (before >= 0
          && ranges.target(before) == ranges.target(i)
          && ranges.targetOffset(before) + ranges.length(before) > ranges.targetOffset(i)) {
        throw new InvalidRequestException(
            ranges.describe(Math.max(before, i))
                + " overlaps in the target with "
                + ranges.describe(Math.min(before, i)));
      }
      before = i;
    }
  }
}
