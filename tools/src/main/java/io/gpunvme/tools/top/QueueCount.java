package io.gpunvme.tools.top;

import io.gpunvme.gpu.watch.Metric;
import io.gpunvme.gpu.watch.Sample;
import org.jspecify.annotations.Nullable;

/** Counters of a queue pair at one moment, as a process told them; null for those it did not. */
final class QueueCount {
  static final QueueCount NONE = new QueueCount();

  @Nullable Double commands;
  @Nullable Double readBytes;
  @Nullable Double writtenBytes;
  @Nullable Double seconds;
  @Nullable Double measured;
  @Nullable Double outstanding;
  @Nullable Double retries;

  /**
   * The value; null where it makes no sense: from a process of another version, or a broken one.
   */
  static @Nullable Double sensible(Sample sample) {
    double value = sample.number();
    return Double.isFinite(value) && value >= 0 ? (Double) value : null;
  }

  /** Takes in a sample, if it is one of these. */
  void take(Metric metric, Sample sample) {
    Double value = sensible(sample);
    switch (metric) {
      case COMMANDS -> commands = value;
      case OUTSTANDING -> outstanding = value;
      case RETRIES -> retries = value;
      case SECONDS -> {
        if (sample.name().endsWith(Metric.SUM)) {
          seconds = value;
        } else {
          measured = value;
        }
      }
      case BYTES -> {
        if ("read".equals(sample.label(Metric.DIRECTION))) {
          readBytes = value;
        } else {
          writtenBytes = value;
        }
      }
      default -> {}
    }
  }

  /** Counters of queue pairs that are added up with each other. */
  static @Nullable Double plus(@Nullable Double a, @Nullable Double b) {
    if (a == null) {
      return b;
    }
    return b == null ? a : (Double) (a + b);
  }

  void add(QueueCount other) {
    commands = plus(commands, other.commands);
    readBytes = plus(readBytes, other.readBytes);
    writtenBytes = plus(writtenBytes, other.writtenBytes);
    seconds = plus(seconds, other.seconds);
    measured = plus(measured, other.measured);
    outstanding = plus(outstanding, other.outstanding);
    retries = plus(retries, other.retries);
  }

  /** What was counted since {@code earlier}: of a counter that began anew, all of it. */
  static @Nullable Double since(@Nullable Double earlier, @Nullable Double now) {
    if (now == null) {
      return null;
    }
    return earlier == null || earlier > now ? now : (Double) (now - earlier);
  }

  /** The difference; outstanding commands and repetitions are those of now. */
  QueueCount since(QueueCount earlier) {
    QueueCount news = new QueueCount();
    news.commands = since(earlier.commands, commands);
    news.readBytes = since(earlier.readBytes, readBytes);
    news.writtenBytes = since(earlier.writtenBytes, writtenBytes);
    news.seconds = since(earlier.seconds, seconds);
    news.measured = since(earlier.measured, measured);
    news.outstanding = outstanding;
    news.retries = retries;
    return news;
  }

  /**
   * Differences as rates.
   *
   * @param elapsed seconds; 0 if there was no earlier look, so that nothing is known of rates
   */
  TopRates rates(double elapsed) {
    return new TopRates(
        rate(commands, elapsed),
        rate(readBytes, elapsed),
        rate(writtenBytes, elapsed),
        elapsed > 0 && seconds != null && measured != null && measured > 0
            ? (Double) (seconds / measured * 1e6)
            : null,
        whole(outstanding),
        whole(retries));
  }

  private static @Nullable Double rate(@Nullable Double count, double elapsed) {
    return count == null || elapsed <= 0 ? null : (Double) (count / elapsed);
  }

  static @Nullable Long whole(@Nullable Double number) {
    return number == null ? null : (Long) Math.round(number);
  }

  /** Whether commands were completed whose bytes nobody counts. */
  boolean hidesBytes() {
    return commands != null && commands > 0 && readBytes == null;
  }

  boolean isAtWork() {
    return outstanding != null || some(commands) || some(readBytes) || some(writtenBytes);
  }

  private static boolean some(@Nullable Double count) {
    return count != null && count > 0;
  }
}
