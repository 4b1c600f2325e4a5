package io.gpunvme.base;

/** Rounding of sizes and addresses to powers of two. Values are at least 0. */
public final class Align {
  private Align() {}

  /** Whether it is 1, 2, 4 and so on. */
  public static boolean isPowerOfTwo(long value) {
    return value > 0 && (value & (value - 1)) == 0;
  }

  /** The largest multiple of {@code alignment}, a power of two, that is at most {@code value}. */
  public static long down(long value, long alignment) {
    return value & -alignment;
  }

  /**
   * The smallest multiple of {@code alignment}, a power of two, that is at least {@code value}; it
   * wraps around where that is above 2^63 - 1.
   */
  public static long up(long value, long alignment) {
    return (value + alignment - 1) & -alignment;
  }

  /**
   * As {@link #up}, for values that come from outside.
   *
   * @throws ArithmeticException if the result is above 2^63 - 1
   */
  public static long upExact(long value, long alignment) {
    return Math.addExact(value, alignment - 1) & -alignment;
  }

  /** Whether it is a multiple of {@code alignment}, a power of two. */
  public static boolean is(long value, long alignment) {
    return (value & (alignment - 1)) == 0;
  }
}
