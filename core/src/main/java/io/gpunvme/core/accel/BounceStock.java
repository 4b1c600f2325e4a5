package io.gpunvme.core.accel;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongFunction;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * Pinned memory through which embedded controllers copy, taken before kernels run: the driver may
 * wait for kernels before it allocates, and those for the controller that asks for the memory. Safe
 * for all threads.
 *
 * @param <T> a piece of memory
 */
final class BounceStock<T> {
  /** Sizes of pieces: for queues' entries, and for data. Longer ones are not in stock. */
  private static final long[] SIZES = {64 << 10, 1 << 20};

  /** Pieces of each size that there are after {@link #fill}. */
  private static final int STOCK = 4;

  /** Of each size; what is given back beyond that is freed. */
  private static final int MOST = 16;

  private final LongFunction<T> allocate;
  private final ToLongFunction<T> size;
  private final Consumer<T> free;
  private final List<Deque<T>> stock = new ArrayList<>();

  /** Nothing in stock yet. */
  BounceStock(LongFunction<T> allocate, ToLongFunction<T> size, Consumer<T> free) {
    this.allocate = allocate;
    this.size = size;
    this.free = free;
    for (int i = 0; i < SIZES.length; i++) {
      stock.add(new ArrayDeque<>());
    }
  }

  /**
   * Sees to it that there is enough for another mapping.
   *
   * @param between allocates between kernels
   */
  void fill(LongFunction<T> between) {
    for (int i = 0; i < SIZES.length; i++) {
      while (count(i) < STOCK) {
        // Outside the monitor: a controller that needs a piece must not wait for kernels.
        add(i, between.apply(SIZES[i]));
      }
    }
  }

  private synchronized int count(int kind) {
    return stock.get(kind).size();
  }

  private synchronized void add(int kind, T piece) {
    stock.get(kind).push(piece);
  }

  /** A piece of at least so many bytes, from stock if there is one. */
  T take(long bytes) {
    for (int i = 0; i < SIZES.length; i++) {
      if (bytes <= SIZES[i]) {
        T piece = poll(i);
        return piece == null ? allocate.apply(SIZES[i]) : piece;
      }
    }
    return allocate.apply(bytes);
  }

  private synchronized @Nullable T poll(int kind) {
    return stock.get(kind).poll();
  }

  /** Takes a piece back; nothing is copied through it any more. */
  void give(T piece) {
    if (!keep(piece)) {
      free.accept(piece);
    }
  }

  private synchronized boolean keep(T piece) {
    for (int i = 0; i < SIZES.length; i++) {
      if (size.applyAsLong(piece) == SIZES[i] && stock.get(i).size() < MOST) {
        stock.get(i).push(piece);
        return true;
      }
    }
    return false;
  }
}
