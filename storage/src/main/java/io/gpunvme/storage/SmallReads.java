package io.gpunvme.storage;

import io.gpunvme.storage.path.PathKind;
import java.util.ArrayList;
import java.util.List;

/**
 * Which path reads one short range fastest, learned from such reads themselves: asking the page
 * cache and every path costs more than they do. Now and then another path is tried, for the answer
 * changes with what the page cache holds.
 *
 * <p>Safe for all threads. They share plain fields: an update that is lost is one measurement less.
 */
final class SmallReads {
  /** The longest range, bytes. */
  static final long MOST_BYTES = 64 << 10;

  /** Reads by the first path before the others are opened and tried. */
  static final int BEFORE_OTHERS = 16;

  /** One read of so many tries another path. */
  static final int TRY_EVERY = 256;

  /** Reads of a path that do not count: they make what it keeps. */
  static final int WARM_UP = 2;

  /** Longest ranges of the classes, each with its own answer. */
  private static final long[] CLASSES = {4 << 10, 16 << 10, MOST_BYTES};

  /** Of the time so far, a new one counts as 1/8, and as no more than 4 times of it. */
  private static final int SHARE = 8;

  private static final int MOST_TIMES = 4;

  private final List<PathKind> kinds;
  private final SizeClass[] classes = new SizeClass[CLASSES.length];

  /**
   * @param automatic the paths that may be chosen, at least one
   */
  SmallReads(List<PathKind> automatic) {
    kinds = new ArrayList<>(automatic);
    // Opening it costs least, which matters to those who read once.
    if (kinds.remove(PathKind.MMAP)) {
      kinds.addFirst(PathKind.MMAP);
    }
    for (int i = 0; i < classes.length; i++) {
      classes[i] = new SizeClass(kinds.size());
    }
  }

  /** The path for a read of 0..{@link #MOST_BYTES} bytes. */
  PathKind choose(long bytes) {
    return kinds.get(kinds.size() == 1 ? 0 : of(bytes).choose());
  }

  /** The path that was fastest so far. */
  PathKind best(long bytes) {
    return kinds.get(of(bytes).best);
  }

  /** A read by a path has succeeded. */
  void measured(PathKind kind, long bytes, long nanos) {
    int index = kinds.indexOf(kind);
    if (kinds.size() > 1 && index >= 0) {
      of(bytes).measured(index, Math.max(1, nanos));
    }
  }

  /** A path cannot be opened. */
  synchronized boolean drop(PathKind kind) {
    int index = kinds.indexOf(kind);
    boolean others = false;
    for (SizeClass one : classes) {
      others = one.drop(index);
    }
    return others;
  }

  private SizeClass of(long bytes) {
    for (int i = 0; i < CLASSES.length; i++) {
      if (bytes <= CLASSES[i]) {
        return classes[i];
      }
    }
    throw new IllegalArgumentException(bytes + " bytes are no small read");
  }

  /** The answer for ranges of about one length. */
  private static final class SizeClass {
    private static final long DROPPED = Long.MAX_VALUE;

    /** Mean time of each path, ns; 0: not known yet. */
    private final long[] nanos;

    private final int[] counts;
    private int best;
    private int reads;
    private int tried;

    SizeClass(int paths) {
      nanos = new long[paths];
      counts = new int[paths];
    }

    int choose() {
      int now = ++reads;
      if (now > BEFORE_OTHERS) {
        for (int i = 0; i < nanos.length; i++) {
          if (nanos[i] == 0) {
            return i;
          }
        }
        if (now % TRY_EVERY == 0) {
          return another();
        }
      }
      return best;
    }

    /** One after the other, those that are not the best. */
    private int another() {
      for (int step = 1; step <= nanos.length; step++) {
        int i = (tried + step) % nanos.length;
        if (i != best && nanos[i] != DROPPED) {
          tried = i;
          return i;
        }
      }
      return best;
    }

    void measured(int path, long time) {
      if (counts[path] < WARM_UP) {
        counts[path]++;
        return;
      }
      long before = nanos[path];
      nanos[path] =
          before == 0 ? time : before + (Math.min(time, MOST_TIMES * before) - before) / SHARE;
      best = fastest();
    }

    private int fastest() {
      int found = best;
      for (int i = 0; i < nanos.length; i++) {
        boolean known = nanos[i] != 0 && nanos[i] != DROPPED;
        boolean worse = nanos[found] == 0 || nanos[found] == DROPPED || nanos[i] < nanos[found];
        if (known && worse) {
          found = i;
        }
      }
      return found;
    }

    /** Whether there are others. */
    boolean drop(int path) {
      nanos[path] = DROPPED;
      int others = -1;
      for (int i = 0; i < nanos.length; i++) {
        if (nanos[i] != DROPPED) {
          others = i;
        }
      }
      if (best == path && others >= 0) {
        best = others;
        best = fastest();
      }
      return others >= 0;
    }
  }
}
