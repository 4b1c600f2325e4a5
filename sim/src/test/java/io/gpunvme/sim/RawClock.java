package io.gpunvme.sim;

import java.util.function.LongSupplier;

/** Time that passes only when a test says so. Starts just before nanoTime's wrap-around. */
final class RawClock implements LongSupplier {
  private volatile long now = Long.MAX_VALUE - 1_000_000;

  @Override
  public long getAsLong() {
    return now;
  }

  void advance(long nanos) {
    now += nanos;
  }
}
