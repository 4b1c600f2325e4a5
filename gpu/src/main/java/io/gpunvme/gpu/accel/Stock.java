package io.gpunvme.gpu.accel;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Things of one kind that embedded controllers copy with, made before kernels run: the driver may
 * wait for kernels before it allocates memory or makes a stream, and those for the controller that
 * asks for it. Safe for all threads.
 *
 * @param <T> pinned memory, or a stream with its events
 */
final class Stock<T> {
  private final int least;
  private final int most;
  private final Supplier<T> make;
  private final Consumer<T> free;
  private final Deque<T> there = new ArrayDeque<>();

  /**
   * Nothing in stock yet.
   *
   * @param least how many there are after {@link #fill}
   * @param most of those given back; what is more is freed
   */
  Stock(int least, int most, Supplier<T> make, Consumer<T> free) {
    this.least = least;
    this.most = most;
    this.make = make;
    this.free = free;
  }

  synchronized boolean isLow() {
    return there.size() < least;
  }

  /** Makes what is missing. */
  void fill() {
    while (isLow()) {
      // Outside the monitor: a controller that needs one must not wait for the driver.
      T one = make.get();
      synchronized (this) {
        there.push(one);
      }
    }
  }

  /** One of them, or null: then the stock is empty. */
  synchronized @Nullable T poll() {
    return there.poll();
  }

  /** Takes one back that nobody uses any more. */
  void give(T one) {
    synchronized (this) {
      if (there.size() < most) {
        there.push(one);
        return;
      }
    }
    free.accept(one);
  }
}
