package io.gpunvme.storage.plan;

import io.gpunvme.base.Align;

/** Lays I/Os over everything that is staged: aligned, none too long, none overlapping another. */
final class Windows {
  private final PlanOptions options;
  private final long longest;
  private final Stretches windows = new Stretches();

  private int member = -1;
  private long start;
  private long end;

  private Windows(PlanOptions options) {
    this.options = options;
    this.longest = Align.down(options.maxBytes(), options.alignment());
  }

  /**
   * The I/Os, each with its member, by member and offset.
   *
   * @param order of the stretches: by member and start
   */
  static Stretches over(Stretches staged, int[] order, Runs runs, PlanOptions options) {
    Windows all = new Windows(options);
    for (int i : order) {
      all.cover(runs.member(staged.number(i)), staged.start(i), staged.end(i));
    }
    all.flush();
    return all.windows;
  }

  private void cover(int on, long from, long to) {
    if (on != member) {
      flush();
      member = on;
      start = 0;
      end = 0;
    }
    long next = Math.max(Align.down(from, options.alignment()), end);
    long last = Align.up(to, options.alignment());
    Stretches.checkCount(windows.size() + (last - next) / longest);
    while (next < last) {
      if (!reaches(next, last)) {
        flush();
        start = next;
      }
      end = last - start > longest ? start + longest : last;
      next = end;
    }
  }

  /** Whether the current I/O goes on there. A gap is read only if all that follows it fits. */
  private boolean reaches(long next, long last) {
    if (end == start) {
      return false;
    }
    return next == end
        ? next - start < longest
        : next - end <= options.gap() && last - start <= longest;
  }

  private void flush() {
    if (end > start) {
      windows.add(member, start, end);
    }
  }
}
