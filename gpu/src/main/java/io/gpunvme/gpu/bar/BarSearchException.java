package io.gpunvme.gpu.bar;

import io.gpunvme.nvme.DmaMappingException;

/** A buffer is not behind a BAR as it would have to be. Nothing was mapped. */
public final class BarSearchException extends DmaMappingException {
  private static final long serialVersionUID = 1;

  /** What is wrong. */
  public enum Problem {
    /** A page is nowhere in the BAR. */
    NOT_FOUND,
    /** A page is at two places of the BAR. */
    FOUND_TWICE,
    /** Where a page seems to be, something else is, too. */
    DIFFERENT,
    /**
     * Where a page was, it is not any more after new marks were written: a copy of it was there.
     */
    STALE,
    /** What is written through the BAR does not arrive on the page. */
    NOT_WRITTEN
  }

  private final Problem problem;
  private final int page;
  private final long barOffset;

  BarSearchException(String message, Problem problem, int page, long barOffset) {
    super(message);
    this.problem = problem;
    this.page = page;
    this.barOffset = barOffset;
  }

  /** What is wrong. */
  public Problem problem() {
    return problem;
  }

  /** The number of the buffer's page of 64 KiB, from 0 on. */
  public int page() {
    return page;
  }

  /** Where in the BAR, bytes; -1 if nowhere. */
  public long barOffset() {
    return barOffset;
  }
}
