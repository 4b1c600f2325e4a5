package io.gpunvme.tools.bench;

import java.time.Duration;
import java.util.Arrays;

/**
 * How often something is measured. The first time is never counted.
 *
 * @param least counted repetitions, &gt; 0
 * @param time and more of them until this has passed since the start
 */
public record Repetitions(int least, Duration time) {
  /** A fixed number. */
  public static Repetitions of(int count) {
    return new Repetitions(count, Duration.ZERO);
  }

  /** At least three, for a time. */
  public static Repetitions lasting(Duration time) {
    return new Repetitions(3, time);
  }

  /** A number is repeated; for {@link #samples}. */
  interface Once {
    /** One repetition's value. */
    double run();
  }

  /** Repeats; the values without the first. */
  double[] samples(Once once) {
    long begin = System.nanoTime();
    once.run();
    double[] values = new double[least];
    int count = 0;
    while (count < least || System.nanoTime() - begin < time.toNanos()) {
      if (count == values.length) {
        values = Arrays.copyOf(values, 2 * count);
      }
      values[count++] = once.run();
    }
    return Arrays.copyOf(values, count);
  }
}
