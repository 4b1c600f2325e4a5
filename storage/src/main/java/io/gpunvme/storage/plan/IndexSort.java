package io.gpunvme.storage.plan;

import java.util.Arrays;

/**
 * Sorts indices by keys: stable, so that sorting by the lesser key first and the greater key last
 * orders by both. A radix sort, because comparing a million boxed indices takes a second.
 */
final class IndexSort {
  private static final int DIGIT_BITS = 11;
  private static final int DIGITS = 1 << DIGIT_BITS;

  private IndexSort() {}

  /** 0, 1, … count - 1. */
  static int[] identity(int count) {
    int[] index = new int[count];
    for (int i = 0; i < count; i++) {
      index[i] = i;
    }
    return index;
  }

  /**
   * The indices by ascending {@code keys[index]}.
   *
   * @param keys not negative
   * @param index may be overwritten, and may be the result
   */
  static int[] by(long[] keys, int[] index) {
    long used = 0;
    boolean sorted = true;
    for (int i = 0; i < index.length; i++) {
      used |= keys[index[i]];
      sorted &= i == 0 || keys[index[i - 1]] <= keys[index[i]];
    }
    if (sorted) {
      return index;
    }
    int[] from = index;
    int[] to = new int[index.length];
    int[] counts = new int[DIGITS];
    for (int shift = 0; shift < Long.SIZE && used >>> shift != 0; shift += DIGIT_BITS) {
      if (pass(keys, shift, counts, from, to)) {
        int[] other = from;
        from = to;
        to = other;
      }
    }
    return from;
  }

  /** Sorts by one digit; false if that is the same in all keys, and nothing was done. */
  private static boolean pass(long[] keys, int shift, int[] counts, int[] from, int[] to) {
    Arrays.fill(counts, 0);
    for (int i : from) {
      counts[digit(keys[i], shift)]++;
    }
    if (counts[digit(keys[from[0]], shift)] == from.length) {
      return false;
    }
    int start = 0;
    for (int d = 0; d < DIGITS; d++) {
      int here = counts[d];
      counts[d] = start;
      start += here;
    }
    for (int i : from) {
      to[counts[digit(keys[i], shift)]++] = i;
    }
    return true;
  }

  private static int digit(long key, int shift) {
    return (int) (key >>> shift) & DIGITS - 1;
  }
}
