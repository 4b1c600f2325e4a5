package io.gpunvme.nvme.fuzz;

import java.util.SplittableRandom;
import java.util.stream.IntStream;

/**
 * Where the random decisions of a fuzz test come from: a seed of the run and the number of a case,
 * from which each case has a generator of its own. So any case can be run again alone with {@code
 * -Dgpunvme.seed=S -Dgpunvme.case=N}.
 */
public final class FuzzSeed {
  // An odd constant with well mixed bits: neighbouring cases get unrelated generators.
  private static final long CASE_STRIDE = 0xD1342543DE82EF95L;

  private final long seed;
  private final int only;

  private FuzzSeed(long seed, int only) {
    this.seed = seed;
    this.only = only;
  }

  /** The seed given on the command line, or a new one; prints it. */
  public static FuzzSeed announce(String test) {
    FuzzSeed seed =
        new FuzzSeed(
            Long.getLong("gpunvme.seed", System.nanoTime() ^ System.currentTimeMillis() << 20),
            Integer.getInteger("gpunvme.case", -1));
    System.out.println(test + ": -Dgpunvme.seed=" + seed.seed);
    return seed;
  }

  /** Whether only one case is wanted, so that totals mean nothing. */
  public boolean isReplay() {
    return only >= 0;
  }

  /** The numbers of the cases to run, all of {@code count} or the one wanted. */
  public IntStream cases(int count) {
    return isReplay() ? IntStream.of(only) : IntStream.range(0, count);
  }

  /** The generator of a case. */
  public SplittableRandom random(int number) {
    return new SplittableRandom(seed + (number + 1) * CASE_STRIDE);
  }

  /** How to run a case again, for the message of a failure. */
  public String describe(int number) {
    return "case " + number + ": -Dgpunvme.seed=" + seed + " -Dgpunvme.case=" + number;
  }
}
