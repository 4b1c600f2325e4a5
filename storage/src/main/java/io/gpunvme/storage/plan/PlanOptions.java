package io.gpunvme.storage.plan;

import io.gpunvme.base.Align;
import io.gpunvme.base.InvalidRequestException;

/**
 * The options of a plan.
 *
 * @param sourceSize bytes in the source; no range goes past it
 * @param alignment of the source: offsets and lengths of all I/Os are multiples, a power of two
 * @param targetAlignment an I/O can put bytes straight to target offsets that are multiples of
 *     this, a power of two
 * @param maxBytes of one I/O, at least {@code alignment}; rounded down to a multiple of it
 * @param gap the price of one more I/O in bytes, 0 or more: reading this many unneeded bytes is
 *     considered as cheap. Ranges at most this far apart (in whole blocks) are read together, and a
 *     run inside such a stretch gets an I/O of its own only if it is longer than this
 * @param stripes the members of the source; their unit is a multiple of {@code alignment}
 * @param order of the I/Os
 */
public record PlanOptions(
    long sourceSize,
    long alignment,
    long targetAlignment,
    long maxBytes,
    long gap,
    Stripes stripes,
    IoOrder order) {
  /**
   * Checks.
   *
   * @throws InvalidRequestException if a value breaks the rules above
   */
  public PlanOptions {
    powerOfTwo("alignment", alignment);
    powerOfTwo("target alignment", targetAlignment);
    if (sourceSize < 0 || sourceSize > Long.MAX_VALUE - alignment) {
      throw new InvalidRequestException(
          "a source of " + sourceSize + " bytes is outside 0.." + (Long.MAX_VALUE - alignment));
    }
    if (maxBytes < alignment) {
      throw new InvalidRequestException(
          "a longest I/O of " + maxBytes + " bytes is below the alignment, " + alignment);
    }
    if (gap < 0) {
      throw new InvalidRequestException("a gap of " + gap + " bytes is negative");
    }
    if (stripes.members() > 1 && !Align.is(stripes.unit(), alignment)) {
      throw new InvalidRequestException(
          "a stripe unit of " + stripes.unit() + " bytes is not a multiple of " + alignment);
    }
  }

  private static void powerOfTwo(String what, long value) {
    if (!Align.isPowerOfTwo(value)) {
      throw new InvalidRequestException(what + " " + value + " is not a power of two");
    }
  }

  /** Options for a source of this many bytes; the others have defaults. */
  public static Builder of(long sourceSize) {
    return new Builder(sourceSize);
  }

  /** Collects options. */
  public static final class Builder {
    private static final long PAGE = 4096;
    private static final long DEFAULT_MAX = 1 << 20;
    private static final long DEFAULT_GAP = 16 << 10;

    private final long sourceSize;
    private long alignment = PAGE;
    private long targetAlignment = PAGE;
    private long maxBytes = DEFAULT_MAX;
    private long gap = DEFAULT_GAP;
    private Stripes stripes = Stripes.NONE;
    private IoOrder order = IoOrder.OFFSET;

    private Builder(long sourceSize) {
      this.sourceSize = sourceSize;
    }

    /** Of the source (4096). */
    public Builder alignment(long bytes) {
      alignment = bytes;
      return this;
    }

    /** Of the targets (4096). */
    public Builder targetAlignment(long bytes) {
      targetAlignment = bytes;
      return this;
    }

    /** Longest I/O (1 MiB). */
    public Builder maxBytes(long bytes) {
      maxBytes = bytes;
      return this;
    }

    /** Unneeded bytes that are as cheap as one more I/O (16 KiB). */
    public Builder gap(long bytes) {
      gap = bytes;
      return this;
    }

    /** The members of the source (one). */
    public Builder stripes(Stripes value) {
      stripes = value;
      return this;
    }

    /** Of the I/Os (by offset). */
    public Builder order(IoOrder value) {
      order = value;
      return this;
    }

    /**
     * The options.
     *
     * @throws InvalidRequestException if they do not fit together
     */
    public PlanOptions build() {
      return new PlanOptions(sourceSize, alignment, targetAlignment, maxBytes, gap, stripes, order);
    }
  }
}
