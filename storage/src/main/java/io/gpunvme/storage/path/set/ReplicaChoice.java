package io.gpunvme.storage.path.set;

import io.gpunvme.gpu.transfer.Direction;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Which copies a read is given: those that are expected to be done with it first, by what is
 * outstanding at each and by what such requests took it lately. One that is slow is left out but
 * for a read now and then, which finds out whether it is well again. Safe for all threads.
 */
final class ReplicaChoice {
  /** Every so many reads one goes to a copy whose turn it is, whatever is expected of it. */
  static final int PROBE = 16;

  /** Copies whose expected ends differ by less than this take turns. */
  private static final double ALIKE = 1.25;

  /** No member. */
  static final int NONE = -1;

  private final Members members;
  private final AtomicInteger turn = new AtomicInteger();

  ReplicaChoice(Members members) {
    this.members = members;
  }

  /**
   * Those who share a read.
   *
   * @param which they take as much as they can
   * @param probe takes one share, or {@link #NONE}
   */
  record Several(List<Integer> which, int probe) {}

  /** The one that reads so many bytes; {@link #NONE} if all have failed. */
  int one(long bytes) {
    int now = turn.getAndIncrement();
    int probe = probe(now);
    if (probe != NONE) {
      return probe;
    }
    int n = members.size();
    boolean anyWell = anyWell(bytes);
    double best = Double.POSITIVE_INFINITY;
    for (int m = 0; m < n; m++) {
      if (takesPart(m, bytes, anyWell)) {
        best = Math.min(best, expected(m, bytes));
      }
    }
    int chosen = NONE;
    for (int i = 0; i < n; i++) {
      int m = Math.floorMod(now + i, n);
      if (!takesPart(m, bytes, anyWell)) {
        members.avoid(m);
      } else if (chosen == NONE && expected(m, bytes) <= best * ALIKE) {
        chosen = m;
      }
    }
    return chosen == NONE ? any() : chosen;
  }

  /** All threads have changed what is expected between two looks. */
  private int any() {
    for (int m = 0; m < members.size(); m++) {
      if (members.failure(m) == null) {
        return m;
      }
    }
    return NONE;
  }

  /**
   * Those that share what is to be read, the one that is expected to be done first in front.
   *
   * @param shares how many there are
   * @param bytes of a share
   */
  Several several(int shares, long bytes) {
    int now = turn.getAndIncrement();
    boolean anyWell = anyWell(bytes);
    List<Integer> which = new ArrayList<>();
    for (int i = 0; i < members.size(); i++) {
      int m = Math.floorMod(now + i, members.size());
      if (takesPart(m, bytes, anyWell)) {
        which.add(m);
      } else {
        members.avoid(m);
      }
    }
    int probe = probe(now);
    if (probe != NONE && which.remove(Integer.valueOf(probe)) && which.isEmpty()) {
      which.add(probe);
      probe = NONE;
    }
    // The sort is stable: those of which the same is expected take turns.
    double[] expected = new double[members.size()];
    which.forEach(m -> expected[m] = expected(m, bytes));
    which.sort((a, b) -> Double.compare(expected[a], expected[b]));
    int most = Math.max(1, shares - (probe == NONE ? 0 : 1));
    return new Several(List.copyOf(which.subList(0, Math.min(most, which.size()))), probe);
  }

  /**
   * Whether a member should take one more share: not if the fastest of the others is expected to be
   * done with all that is left before it is with this share.
   *
   * @param left bytes that nobody has taken, this share among them
   */
  boolean isWorthwhile(int member, List<Integer> others, long share, long left) {
    double own = members.slow().nanos(member, Direction.READ, share);
    if (own == 0) {
      return true;
    }
    for (int other : others) {
      double theirs = members.slow().nanos(other, Direction.READ, share);
      boolean faster = other != member && theirs > 0 && theirs < own;
      if (faster && members.failure(other) == null && theirs * left / share < own) {
        return false;
      }
    }
    return true;
  }

  private int probe(int now) {
    if (Math.floorMod(now, PROBE) != PROBE - 1) {
      return NONE;
    }
    int m = Math.floorMod(now / PROBE, members.size());
    return members.failure(m) == null ? m : NONE;
  }

  private boolean anyWell(long bytes) {
    for (int m = 0; m < members.size(); m++) {
      if (takesPart(m, bytes, true)) {
        return true;
      }
    }
    return false;
  }

  private boolean takesPart(int m, long bytes, boolean onlyWell) {
    return members.failure(m) == null
        && !(onlyWell && members.slow().isSlow(m, Direction.READ, bytes));
  }

  /**
   * When such a read would be over, in ns from now; of one of which nothing is known: the least.
   */
  private double expected(int m, long bytes) {
    double nanos = members.slow().nanos(m, Direction.READ, bytes);
    for (int o = 0; nanos == 0 && o < members.size(); o++) {
      nanos = members.slow().nanos(o, Direction.READ, bytes);
    }
    return Math.max(1, nanos) * (1 + (double) members.outstandingBytes(m) / Math.max(1, bytes));
  }
}
