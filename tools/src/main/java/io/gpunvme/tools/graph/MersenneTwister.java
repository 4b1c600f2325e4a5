package io.gpunvme.tools.graph;

/**
 * The generator mt19937 of C++ (M. Matsumoto and T. Nishimura, 1998), and whole numbers in ranges
 * as libstdc++ drew them until GCC 10. Published graphs are made with these; since GCC 11 it has
 * other numbers. For one thread.
 */
final class MersenneTwister {
  private static final int WORDS = 624;
  private static final int MIDDLE = 397;
  private static final long WORD = 0xFFFFFFFFL;

  private final int[] state = new int[WORDS];
  private int next;

  MersenneTwister(int seed) {
    seed(seed);
  }

  /** Begins anew. */
  void seed(int seed) {
    state[0] = seed;
    for (int i = 1; i < WORDS; i++) {
      int before = state[i - 1];
      state[i] = 1812433253 * (before ^ before >>> 30) + i;
    }
    next = WORDS;
  }

  /** The next 32 bits. */
  int next() {
    if (next == WORDS) {
      renew();
    }
    int x = state[next++];
    x ^= x >>> 11;
    x ^= x << 7 & 0x9D2C5680;
    x ^= x << 15 & 0xEFC60000;
    return x ^ x >>> 18;
  }

  private void renew() {
    for (int i = 0; i < WORDS; i++) {
      int x = state[i] & 0x80000000 | state[i + 1 == WORDS ? 0 : i + 1] & 0x7FFFFFFF;
      int other = state[i + MIDDLE < WORDS ? i + MIDDLE : i + MIDDLE - WORDS];
      state[i] = other ^ x >>> 1 ^ -(x & 1) & 0x9908B0DF;
    }
    next = 0;
  }

  /**
   * A number below a bound, each as likely as another.
   *
   * @param bound 1..2^32 - 1
   */
  long below(long bound) {
    long scaling = WORD / bound;
    long past = bound * scaling;
    long draw;
    do {
      draw = next() & WORD;
    } while (draw >= past);
    return draw / scaling;
  }
}
