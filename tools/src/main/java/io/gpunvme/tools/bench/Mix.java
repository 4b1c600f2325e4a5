package io.gpunvme.tools.bench;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.transfer.Direction;
import java.util.stream.IntStream;

/**
 * How many of the commands read; the others write.
 *
 * @param readPercent 0..100
 */
public record Mix(int readPercent) {
  private static final int ALL = 100;

  /** Only reads. */
  public static final Mix READS = new Mix(ALL);

  /**
   * Checks.
   *
   * @throws InvalidRequestException if it is no percentage
   */
  public Mix {
    if (readPercent < 0 || readPercent > ALL) {
      throw new InvalidRequestException(readPercent + " is not from 0 to 100 % of reads");
    }
  }

  /** Whether any command writes. */
  public boolean writes() {
    return readPercent < ALL;
  }

  /** The least number of commands that can have the mix exactly; so can its multiples. */
  int unit() {
    return IntStream.rangeClosed(1, ALL)
        .filter(n -> n * readPercent % ALL == 0)
        .findFirst()
        .orElse(ALL);
  }

  /** What a command does, by its number: any part of a plan has the mix, give or take one. */
  Direction direction(long command) {
    boolean reads = (command + 1) * readPercent / ALL > command * readPercent / ALL;
    return reads ? Direction.READ : Direction.WRITE;
  }
}
