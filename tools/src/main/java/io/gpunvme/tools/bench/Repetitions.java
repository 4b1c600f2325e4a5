package io.gpunvme.tools.bench;

import java.time.Duration;
import java.util.Arrays;
import java.util.function.LongConsumer;

/**
 * How often something is measured. The first time is never counted.
 *
 * @param least counted repetitions, &gt; 0
 * @param time and more of them until this has passed since the start
 * @param passed told after each repetition how many ns it took
 */
public record Repetitions(int least, Duration time, LongConsumer passed) {
  /** A fixed number. */
  public static Repetitions of(int count) {
    return new Repetitions(count, Duration.ZERO, nanos -> {});
  }

  /** At least three, for a time. */
  public static Repetitions lasting(Duration time) {
    return new Repetitions(3, time, nanos -> {});
  }

  /** The same, and somebody is told how they get on. */
  public Repetitions telling(LongConsumer listener) {
    return new Repetitions(least, time, listener);
  }

  /** A number is repeated; for {@link #samples}. */
  interface Once {
    /** One repetition's value. */
    double run();
  }

  /** Repeats; the values without the first. */
  double[] samples(Once once) {
    long begin = System.nanoTime();
    run(once);
    double[] values = new double[least];
    int count = 0;
    while (count < least || System.nanoTime() - begin < time.toNanos()) {
      if (count == values.length) {
        values = Arrays.copyOf(values, 2 * count);
      }
      values[count++] = run(once);
    }
    return Arrays.copyOf(values, count);
  }

  private double run(Once once) {
    long begin = System.nanoTime();
    double value = once.run();
    passed.accept(System.nanoTime() - begin);
    return value;
  }
}
