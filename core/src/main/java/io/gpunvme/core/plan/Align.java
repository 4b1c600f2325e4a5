package io.gpunvme.core.plan;

/** Rounding to powers of two. */
final class Align {
  private Align() {}

  static boolean isPowerOfTwo(long value) {
    return value > 0 && (value & (value - 1)) == 0;
  }

  static long down(long value, long alignment) {
    return value & -alignment;
  }

  static long up(long value, long alignment) {
    return value + alignment - 1 & -alignment;
  }

  static boolean is(long value, long alignment) {
    return (value & alignment - 1) == 0;
  }
}
