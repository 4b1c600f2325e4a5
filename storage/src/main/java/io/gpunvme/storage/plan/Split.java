package io.gpunvme.storage.plan;

import io.gpunvme.base.Align;

/**
 * Divides runs into stretches that an I/O can put where they belong itself, and the rest, which
 * passes through staging. A stretch is direct only where nobody else asks for its bytes, so that
 * every byte is read once.
 */
final class Split {
  private final Runs runs;
  private final PlanOptions options;

  /** Longest direct I/O; 0 if the alignments leave none. */
  private final long longest;

  /** Up to where each run is divided. */
  private final long[] done;

  private final Stretches direct = new Stretches();
  private final Stretches staged = new Stretches();
  private long asked;

  Split(Runs runs, PlanOptions options) {
    this.runs = runs;
    this.options = options;
    long step = Math.max(options.alignment(), options.targetAlignment());
    this.longest = Align.down(options.maxBytes(), step);
    this.done = new long[runs.size()];
    for (int run = 0; run < done.length; run++) {
      done[run] = runs.start(run);
    }
    divide();
  }

  /** Whole blocks of one run each, with its number. */
  Stretches direct() {
    return direct;
  }

  /** The rest, with its run's number, in no particular order. */
  Stretches staged() {
    return staged;
  }

  /** Longest direct I/O. */
  long longestDirect() {
    return longest;
  }

  /** Bytes of the source that at least one range asks for. */
  long asked() {
    return asked;
  }

  /**
   * Walks through the runs by start and keeps of those seen so far the one that ends last, and
   * where the last of all others ends: between that and the next start only one run is left.
   */
  private void divide() {
    int first = 0;
    int top = 0;
    long others = 0;
    long covered = 0;
    for (int run = 0; run < runs.size(); run++) {
      if (run == first) {
        top = run;
        others = runs.start(run);
      } else if (runs.end(run) > runs.end(top)) {
        others = runs.end(top);
        top = run;
      } else {
        others = Math.max(others, runs.end(run));
      }
      boolean newMember = run == 0 || runs.member(run) != runs.member(run - 1);
      long from = newMember ? runs.start(run) : Math.max(runs.start(run), covered);
      covered = Math.max(from, runs.end(run));
      asked += covered - from;

      boolean last = endsStretch(run, top);
      long to = last ? runs.end(top) : Math.min(runs.end(top), runs.start(run + 1));
      alone(top, Math.max(runs.start(run), others), to, last && run == first);
      if (last) {
        first = run + 1;
      }
    }
    for (int run = 0; run < runs.size(); run++) {
      if (done[run] < runs.end(run)) {
        staged.add(run, done[run], runs.end(run));
      }
    }
  }

  /** Whether the next run is too far away to be read together with this one. */
  private boolean endsStretch(int run, int top) {
    if (run + 1 == runs.size() || runs.member(run + 1) != runs.member(run)) {
      return true;
    }
    long end = Align.up(runs.end(top), options.alignment());
    return Align.down(runs.start(run + 1), options.alignment()) - end > options.gap();
  }

  /** Bytes that only this run asks for: direct as far as that is possible and pays. */
  private void alone(int run, long from, long to, boolean isolated) {
    long end = Align.down(to, options.alignment());
    long start = firstDirect(run, from, end);
    if (start < 0) {
      return;
    }
    boolean whole = isolated && start == runs.start(run) && end == runs.end(run);
    if (!whole && end - start <= options.gap()) {
      return;
    }
    if (start > done[run]) {
      staged.add(run, done[run], start);
    }
    direct.add(run, start, end);
    done[run] = end;
  }

  /** First byte before {@code end} that is aligned in the source and in the target, or -1. */
  private long firstDirect(int run, long from, long end) {
    long alignment = options.alignment();
    long targetAlignment = options.targetAlignment();
    long start = Align.up(from, alignment);
    if (longest == 0 || start >= end) {
      return -1;
    }
    // Only steps of the greater alignment keep both.
    long target = runs.targetOffset(run, start);
    long missing = -target & targetAlignment - 1;
    boolean possible = Align.is(missing, alignment) && missing < end - start;
    return possible ? start + missing : -1;
  }
}
