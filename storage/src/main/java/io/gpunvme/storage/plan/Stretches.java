package io.gpunvme.storage.plan;

import io.gpunvme.base.InvalidRequestException;
import java.util.Arrays;

/** A growing list of [start, end) on some member, each with a number: a run's, or the member's. */
final class Stretches {
  /** More I/Os, or pieces, than this are refused: a gigabyte or two of plan. */
  static final int MOST = 1 << 24;

  private static final int FIRST = 64;

  private int size;
  private int[] number = new int[FIRST];
  private long[] start = new long[FIRST];
  private long[] end = new long[FIRST];

  int size() {
    return size;
  }

  int number(int i) {
    return number[i];
  }

  long start(int i) {
    return start[i];
  }

  long end(int i) {
    return end[i];
  }

  void add(int whose, long from, long to) {
    if (size == number.length) {
      checkCount(size + 1L);
      number = Arrays.copyOf(number, 2 * size);
      start = Arrays.copyOf(start, 2 * size);
      end = Arrays.copyOf(end, 2 * size);
    }
    number[size] = whose;
    start[size] = from;
    end[size] = to;
    size++;
  }

  /** The indices in the order of the starts. */
  int[] byStart() {
    return IndexSort.by(start, IndexSort.identity(size));
  }

  static void checkCount(long count) {
    if (count > MOST) {
      throw new InvalidRequestException(
          "a plan of more than " + MOST + " I/Os or pieces is too long; split the request");
    }
  }
}
