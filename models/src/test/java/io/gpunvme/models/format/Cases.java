package io.gpunvme.models.format;

import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * Numbered random cases of a test, each with a generator of its own, so that any can be repeated
 * alone with {@code -Dgpunvme.seed=S -Dgpunvme.case=N}.
 */
public record Cases(long seed, int only) {
  /** The seed given on the command line, or a new one; prints it. */
  public static Cases announce(String test) {
    Cases cases =
        new Cases(
            Long.getLong("gpunvme.seed", System.nanoTime()),
            Integer.getInteger("gpunvme.case", -1));
    System.out.println(test + ": -Dgpunvme.seed=" + cases.seed);
    return cases;
  }

  /** Whether only one is wanted, so that totals mean nothing. */
  public boolean isReplay() {
    return only >= 0;
  }

  public int[] numbers(int count) {
    return isReplay() ? new int[] {only} : IntStream.range(0, count).toArray();
  }

  public SplittableRandom random(int number) {
    return new SplittableRandom(new SplittableRandom(seed ^ (long) number << 40).nextLong());
  }

  /** How to run a case again, for the message of a failure. */
  public String describe(int number) {
    return "case " + number + ": -Dgpunvme.seed=" + seed + " -Dgpunvme.case=" + number;
  }
}
