package io.gpunvme.storage.path.set;

import io.gpunvme.gpu.transfer.Direction;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * Finds the members of a set that have become slow: it compares what a member's latest requests
 * took with what the others' took, for requests of one direction and about one size. It has no
 * clock, takes no lock and allocates only when a verdict changes; threads that report at the same
 * moment may lose each other's samples.
 *
 * <p>The mean follows the samples with a weight of 1/8. A single sample counts for at most four
 * times the mean and {@link #LEAST_NANOS} more, so that one pause of the machine makes nobody slow,
 * and a few in a row do.
 */
final class SlowMembers {
  /** A member is slow from so many times what the others take, */
  static final double SLOW = 3;

  /** and well again below so many. */
  static final double WELL = 1.5;

  /** A member that takes so little longer for a request is not called slow, ns. */
  static final long LEAST_NANOS = 500_000;

  /**
   * So many requests before a member is compared. Until then the least of them counts: they warm up
   * caches and compilers.
   */
  static final int ENOUGH = 4;

  /**
   * So many samples one after the other that a mean must be too high: that of a machine that was
   * busy for a moment falls sooner.
   */
  static final int CONFIRMED = 8;

  /**
   * And for so long, ns: reads go elsewhere at once, but what is soon over is not worth telling.
   */
  static final long CONFIRMED_NANOS = 1_000_000_000;

  private static final double WEIGHT = 1.0 / 8;
  private static final double WEIGHT_OF_PROBES = 1.0 / 2;
  private static final double MOST_GROWTH = 4;

  /** Sizes are told apart by powers of 4, from 16 KiB on. */
  private static final int SIZES = 7;

  private static final int LEAST_SHIFT = 12;

  /** Below this size (256 KiB) a request costs what it costs, above by the byte. */
  private static final int BY_BYTES = 3;

  private static final int KINDS = 2 * SIZES;

  /** Hears of changes; called by the thread that reported the deciding sample. */
  interface Told {
    /**
     * A member has become slow, or is well again.
     *
     * @param times how many times as long as the others' its requests take
     * @param nanos what the last request's kind takes it
     * @param others what it takes the others, in the middle
     */
    void changed(int member, boolean slow, double times, long nanos, long others);
  }

  private final int members;
  private final long confirmedNanos;
  private final Told told;

  /** Mean cost, for each member and kind: ns a request, or ns a byte; the bits of a double. */
  private final AtomicLongArray cost;

  private final AtomicIntegerArray samples;

  /** How often in a row the mean was too high. */
  private final AtomicIntegerArray suspected;

  /** When that began. */
  private final AtomicLongArray suspectedSince;

  /** A bit for each kind in which a member is slow. */
  private final AtomicIntegerArray slow;

  /**
   * @param confirmedNanos how long a member must take too much before it is slow, {@link
   *     #CONFIRMED_NANOS} but in tests
   */
  SlowMembers(int members, long confirmedNanos, Told told) {
    this.members = members;
    this.confirmedNanos = confirmedNanos;
    this.told = told;
    cost = new AtomicLongArray(members * KINDS);
    samples = new AtomicIntegerArray(members * KINDS);
    suspected = new AtomicIntegerArray(members * KINDS);
    suspectedSince = new AtomicLongArray(members * KINDS);
    slow = new AtomicIntegerArray(members);
  }

  private static int size(long bytes) {
    int log = Long.SIZE - 1 - Long.numberOfLeadingZeros(Math.max(1, bytes));
    return Math.clamp((log - LEAST_SHIFT) / 2, 0, SIZES - 1);
  }

  private static int kind(Direction direction, long bytes) {
    return (direction == Direction.READ ? 0 : SIZES) + size(bytes);
  }

  private static double unit(int kind, long bytes) {
    return kind % SIZES < BY_BYTES ? 1 : bytes;
  }

  private int at(int member, int kind) {
    return member * KINDS + kind;
  }

  private double cost(int at) {
    return Double.longBitsToDouble(cost.get(at));
  }

  /** Whether it is slow for such requests. */
  boolean isSlow(int member, Direction direction, long bytes) {
    return isSlow(member, kind(direction, bytes));
  }

  private boolean isSlow(int member, int kind) {
    return (slow.get(member) >>> kind & 1) != 0;
  }

  /** Whether it is slow for any requests. */
  boolean isSlow(int member) {
    return slow.get(member) != 0;
  }

  /** What such a request takes it, ns; 0 if that is not known yet. */
  double nanos(int member, Direction direction, long bytes) {
    int kind = kind(direction, bytes);
    return cost(at(member, kind)) * unit(kind, bytes);
  }

  /**
   * A request of a member has succeeded.
   *
   * @param now a time in ns
   */
  void ended(int member, Direction direction, long bytes, long nanos, long now) {
    int kind = kind(direction, bytes);
    int at = at(member, kind);
    boolean isSlow = isSlow(member, kind);
    int count = samples.get(at);
    double sample = Math.max(1, nanos) / unit(kind, bytes);
    double mean = cost(at);
    double weight = isSlow ? WEIGHT_OF_PROBES : WEIGHT;
    double most = mean * MOST_GROWTH + LEAST_NANOS / unit(kind, bytes);
    double next =
        count == 0
            ? sample
            : count < ENOUGH
                ? Math.min(mean, sample)
                : mean + weight * (Math.min(sample, most) - mean);
    cost.set(at, Double.doubleToRawLongBits(next));
    if (count < ENOUGH) {
      samples.set(at, count + 1);
    }
    if (count + 1 >= ENOUGH) {
      judge(member, kind, next, isSlow, bytes, now);
    }
  }

  private void judge(int member, int kind, double own, boolean isSlow, long bytes, long now) {
    double others = others(member, kind);
    if (others == 0) {
      return;
    }
    double unit = unit(kind, bytes);
    boolean judged =
        isSlow
            ? own >= WELL * others
            : isConfirmed(
                at(member, kind), own > SLOW * others && (own - others) * unit > LEAST_NANOS, now);
    if (judged != isSlow && turned(member, kind, judged)) {
      told.changed(member, judged, own / others, (long) (own * unit), (long) (others * unit));
    }
  }

  private boolean isConfirmed(int at, boolean tooHigh, long now) {
    int before = suspected.get(at);
    if (!tooHigh) {
      if (before != 0) {
        suspected.set(at, 0);
      }
      return false;
    }
    if (before == 0) {
      suspectedSince.set(at, now);
    }
    suspected.set(at, Math.min(before + 1, CONFIRMED));
    return before + 1 >= CONFIRMED && now - suspectedSince.get(at) >= confirmedNanos;
  }

  /** Changes a verdict; false if another thread was first. */
  private boolean turned(int member, int kind, boolean to) {
    int bit = 1 << kind;
    int was =
        to ? slow.getAndUpdate(member, s -> s | bit) : slow.getAndUpdate(member, s -> s & ~bit);
    if ((was & bit) != 0 == to) {
      return false;
    }
    // From here on its samples are looked at anew.
    suspected.set(at(member, kind), 0);
    samples.set(at(member, kind), 0);
    return true;
  }

  /**
   * The middle of what the others take, of two the lower; 0 if there are none to compare with.
   * Counts instead of sorting: sets are small, and this allocates nothing.
   */
  private double others(int member, int kind) {
    int count = 0;
    for (int m = 0; m < members; m++) {
      count += isMeasure(m, member, kind) ? 1 : 0;
    }
    for (int m = 0; m < members; m++) {
      if (isMeasure(m, member, kind)) {
        double one = cost(at(m, kind));
        int less = 0;
        int same = 0;
        for (int o = 0; o < members; o++) {
          if (isMeasure(o, member, kind)) {
            double other = cost(at(o, kind));
            less += other < one ? 1 : 0;
            same += other == one ? 1 : 0;
          }
        }
        int middle = (count - 1) / 2;
        if (less <= middle && middle < less + same) {
          return one;
        }
      }
    }
    return 0;
  }

  private boolean isMeasure(int other, int member, int kind) {
    return other != member && samples.get(at(other, kind)) >= ENOUGH && !isSlow(other, kind);
  }
}
