package io.gpunvme.sim;

import java.util.Map;
import java.util.TreeMap;

/**
 * A set of logical blocks, kept as ranges that neither overlap nor touch.
 *
 * <p>Safe for all threads. An empty set is asked without locking or allocating.
 */
final class LbaRangeSet {
  /** First block of a range -> first block behind it. */
  private final TreeMap<Long, Long> ranges = new TreeMap<>();

  private volatile boolean empty = true;

  /** Adds {@code count} blocks from {@code first} on. */
  synchronized void add(long first, long count) {
    long from = first;
    long to = first + count;
    Map.Entry<Long, Long> before = ranges.floorEntry(to);
    while (before != null && before.getValue() >= from) {
      from = Math.min(from, before.getKey());
      to = Math.max(to, before.getValue());
      ranges.remove(before.getKey());
      before = ranges.floorEntry(to);
    }
    ranges.put(from, to);
    empty = false;
  }

  /** Removes {@code count} blocks from {@code first} on. */
  void remove(long first, long count) {
    if (!empty) {
      cut(first, first + count);
    }
  }

  private synchronized void cut(long from, long to) {
    Map.Entry<Long, Long> last = ranges.lowerEntry(to);
    while (last != null && last.getValue() > from) {
      ranges.remove(last.getKey());
      if (last.getValue() > to) {
        ranges.put(to, last.getValue());
      }
      if (last.getKey() < from) {
        ranges.put(last.getKey(), from);
      }
      last = ranges.lowerEntry(last.getKey());
    }
    empty = ranges.isEmpty();
  }

  /** Whether any of {@code count} blocks from {@code first} on is in the set. */
  boolean intersects(long first, long count) {
    return !empty && overlaps(first, first + count);
  }

  private synchronized boolean overlaps(long from, long to) {
    Map.Entry<Long, Long> last = ranges.lowerEntry(to);
    return last != null && last.getValue() > from;
  }

  /** Removes everything. */
  synchronized void clear() {
    ranges.clear();
    empty = true;
  }
}
