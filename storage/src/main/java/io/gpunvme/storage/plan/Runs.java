package io.gpunvme.storage.plan;

/**
 * What is asked of the members, sorted by member and offset there: a range is one run, or one for
 * each stripe unit it touches. Ranges that go on both in the source and in the target are one run.
 */
final class Runs {
  private int size;
  private final int[] member;
  private final long[] start;
  private final long[] end;
  private final int[] target;
  private final long[] targetOffset;

  /** The first range that the run is of. */
  private final int[] range;

  /** The range that was added last. */
  private int lastRange = -1;

  private Runs(int capacity) {
    member = new int[capacity];
    start = new long[capacity];
    end = new long[capacity];
    target = new int[capacity];
    targetOffset = new long[capacity];
    range = new int[capacity];
  }

  static Runs of(Ranges ranges, PlanOptions options) {
    Stripes stripes = options.stripes();
    Runs given = new Runs(count(ranges, stripes));
    for (int i = 0; i < ranges.size(); i++) {
      given.cut(ranges, i, stripes);
    }
    return given.sorted(stripes.members(), options.order() == IoOrder.GIVEN);
  }

  private static int count(Ranges ranges, Stripes stripes) {
    long count = 0;
    for (int i = 0; i < ranges.size(); i++) {
      long length = ranges.length(i);
      if (length > 0) {
        long first = ranges.offset(i);
        boolean one = stripes.members() == 1;
        count += one ? 1 : (first + length - 1) / stripes.unit() - first / stripes.unit() + 1;
        Stretches.checkCount(count);
      }
    }
    return (int) count;
  }

  private void cut(Ranges ranges, int i, Stripes stripes) {
    long from = ranges.offset(i);
    long left = ranges.length(i);
    long at = ranges.targetOffset(i);
    while (left > 0) {
      long here =
          stripes.members() == 1 ? left : Math.min(left, stripes.unit() - from % stripes.unit());
      long place = stripes.memberOffset(from);
      add(stripes.member(from), place, place + here, ranges.target(i), at, i);
      from += here;
      at += here;
      left -= here;
    }
  }

  private void add(int on, long from, long to, int into, long at, int of) {
    member[size] = on;
    start[size] = from;
    end[size] = to;
    target[size] = into;
    targetOffset[size] = at;
    range[size] = of;
    lastRange = of;
    size++;
  }

  private Runs sorted(int members, boolean keepOrder) {
    int[] order = IndexSort.by(start, IndexSort.identity(size));
    if (members > 1) {
      long[] keys = new long[size];
      for (int i = 0; i < size; i++) {
        keys[i] = member[i];
      }
      order = IndexSort.by(keys, order);
    }
    Runs sorted = new Runs(size);
    for (int i : order) {
      if (!sorted.goOn(this, i, keepOrder)) {
        sorted.add(member[i], start[i], end[i], target[i], targetOffset[i], range[i]);
      }
    }
    return sorted;
  }

  /** Makes the last run longer, if another's run is the rest of it and may be read with it. */
  private boolean goOn(Runs other, int i, boolean keepOrder) {
    int last = size - 1;
    if (last < 0
        || (keepOrder && other.range[i] != lastRange + 1)
        || member[last] != other.member[i]
        || end[last] != other.start[i]
        || target[last] != other.target[i]
        || targetOffset[last] + (end[last] - start[last]) != other.targetOffset[i]) {
      return false;
    }
    end[last] = other.end[i];
    range[last] = Math.min(range[last], other.range[i]);
    lastRange = other.range[i];
    return true;
  }

  int size() {
    return size;
  }

  int member(int run) {
    return member[run];
  }

  long start(int run) {
    return start[run];
  }

  long end(int run) {
    return end[run];
  }

  int target(int run) {
    return target[run];
  }

  /** Where a byte of the run goes, by its offset on the member. */
  long targetOffset(int run, long offset) {
    return targetOffset[run] + (offset - start[run]);
  }

  int range(int run) {
    return range[run];
  }
}
