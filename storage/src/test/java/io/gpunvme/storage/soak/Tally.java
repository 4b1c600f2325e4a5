package io.gpunvme.storage.soak;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;

/** What happened how often. Safe for all threads. */
final class Tally {
  private static final int NOTES = 60;

  private final long start = System.nanoTime();
  private final Deque<String> notes = new ArrayDeque<>();
  private final Map<String, LongAdder> counts = new ConcurrentHashMap<>();

  void add(String what) {
    add(what, 1);
  }

  void add(String what, long times) {
    counts.computeIfAbsent(what, _ -> new LongAdder()).add(times);
  }

  long of(String what) {
    LongAdder count = counts.get(what);
    return count == null ? 0 : count.sum();
  }

  /** For whoever looks for the reason of a defect: the last ones are kept. */
  void note(String what) {
    synchronized (notes) {
      notes.addLast("%.3f s: %s".formatted((System.nanoTime() - start) / 1e9, what));
      if (notes.size() > NOTES) {
        notes.removeFirst();
      }
    }
  }

  String notes() {
    synchronized (notes) {
      return String.join("\n", notes);
    }
  }

  /** All so far, in the order of their names. */
  Map<String, Long> all() {
    Map<String, Long> all = new TreeMap<>();
    counts.forEach((what, count) -> all.put(what, count.sum()));
    return all;
  }

  /** What has come since {@link #all} was as given. */
  Map<String, Long> since(Map<String, Long> before) {
    Map<String, Long> now = all();
    now.replaceAll((what, count) -> count - before.getOrDefault(what, 0L));
    now.values().removeIf(count -> count == 0);
    return now;
  }
}
