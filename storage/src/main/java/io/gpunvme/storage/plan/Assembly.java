package io.gpunvme.storage.plan;

import java.util.Arrays;

/** Puts the I/Os of a plan in order and finds the pieces of each. */
final class Assembly {
  private final Ranges ranges;
  private final Runs runs;
  private final Split split;
  private final PlanOptions options;

  /** What is staged, and by which I/Os; both by member and start. */
  private final Stretches staged;

  private final int[] stagedOrder;
  private final Stretches windows;

  // I/Os, first the staged ones, then the direct ones.
  private final int ios;
  private final int[] member;
  private final long[] start;
  private final long[] end;
  private final int[] pieces;
  private final long[] firstRange;

  /** The run of a direct I/O, or -1. */
  private final int[] run;

  Assembly(Ranges ranges, Runs runs, Split split, PlanOptions options) {
    this.ranges = ranges;
    this.runs = runs;
    this.split = split;
    this.options = options;
    this.staged = split.staged();
    this.stagedOrder = stagedOrder();
    this.windows = Windows.over(staged, stagedOrder, runs, options);
    this.ios = countIos();
    this.member = new int[ios];
    this.start = new long[ios];
    this.end = new long[ios];
    this.pieces = new int[ios];
    this.firstRange = new long[ios];
    this.run = new int[ios];
  }

  private int[] stagedOrder() {
    int[] order = staged.byStart();
    if (options.stripes().members() == 1) {
      return order;
    }
    long[] keys = new long[staged.size()];
    for (int i = 0; i < keys.length; i++) {
      keys[i] = runs.member(staged.number(i));
    }
    return IndexSort.by(keys, order);
  }

  private int countIos() {
    Stretches direct = split.direct();
    long count = windows.size();
    for (int i = 0; i < direct.size(); i++) {
      count += Math.ceilDiv(direct.end(i) - direct.start(i), split.longestDirect());
      Stretches.checkCount(count);
    }
    return (int) count;
  }

  Plan plan() {
    long stagedPieces = stagedIos();
    directIos();
    return fill(order(), (int) stagedPieces + ios - windows.size());
  }

  /** Returns how many pieces they have. */
  private long stagedIos() {
    for (int io = 0; io < windows.size(); io++) {
      member[io] = windows.number(io);
      start[io] = windows.start(io);
      end[io] = windows.end(io);
      run[io] = -1;
    }
    Arrays.fill(firstRange, Long.MAX_VALUE);
    return windowPieces(
        (io, stretch) -> {
          pieces[io]++;
          firstRange[io] = Math.min(firstRange[io], runs.range(staged.number(stretch)));
        });
  }

  private void directIos() {
    Stretches direct = split.direct();
    int io = windows.size();
    for (int i = 0; i < direct.size(); i++) {
      for (long at = direct.start(i); at < direct.end(i); at = end[io++]) {
        run[io] = direct.number(i);
        member[io] = runs.member(run[io]);
        start[io] = at;
        end[io] = Math.min(direct.end(i) - at, split.longestDirect()) + at;
        pieces[io] = 1;
        firstRange[io] = runs.range(run[io]);
      }
    }
  }

  /** Receives a staged I/O and a stretch that is in it, at least in part. */
  private interface PieceVisitor {
    void visit(int window, int stretch);
  }

  /** Each pair of a staged I/O and a stretch in it, by stretch. Returns how many. */
  private long windowPieces(PieceVisitor visitor) {
    long count = 0;
    int first = 0;
    for (int stretch : stagedOrder) {
      int on = runs.member(staged.number(stretch));
      while (windows.number(first) != on || windows.end(first) <= staged.start(stretch)) {
        first++;
      }
      for (int w = first;
          w < windows.size() && windows.number(w) == on && windows.start(w) < staged.end(stretch);
          w++) {
        Stretches.checkCount(++count);
        visitor.visit(w, stretch);
      }
    }
    return count;
  }

  private int[] order() {
    long[] keys = new long[ios];
    for (int io = 0; io < ios; io++) {
      keys[io] = options.stripes().offset(member[io], start[io]);
    }
    int[] order = IndexSort.by(keys, IndexSort.identity(ios));
    return options.order() == IoOrder.GIVEN ? IndexSort.by(firstRange, order) : order;
  }

  private Plan fill(int[] order, int pieceCount) {
    PlanArrays arrays = new PlanArrays(ios, pieceCount);
    int[] next = new int[ios];
    int piece = 0;
    for (int at = 0; at < ios; at++) {
      int io = order[at];
      arrays.member[at] = member[io];
      arrays.offset[at] = start[io];
      arrays.length[at] = end[io] - start[io];
      arrays.direct[at] = run[io] >= 0;
      arrays.firstPiece[at] = piece;
      next[io] = piece;
      piece += pieces[io];
      if (run[io] >= 0) {
        putPiece(arrays, next[io], io, run[io], start[io], end[io]);
      }
    }
    arrays.firstPiece[ios] = piece;
    windowPieces(
        (io, stretch) ->
            putPiece(
                arrays,
                next[io]++,
                io,
                staged.number(stretch),
                Math.max(start[io], staged.start(stretch)),
                Math.min(end[io], staged.end(stretch))));
    return new Plan(arrays, options, ranges, split.asked());
  }

  private void putPiece(PlanArrays arrays, int piece, int io, int of, long from, long to) {
    arrays.pieceOffset[piece] = from - start[io];
    arrays.pieceLength[piece] = to - from;
    arrays.target[piece] = runs.target(of);
    arrays.targetOffset[piece] = runs.targetOffset(of, from);
  }
}
