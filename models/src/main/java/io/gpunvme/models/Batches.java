package io.gpunvme.models;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.models.LoadPlan.Place;
import io.gpunvme.storage.plan.Ranges;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.IntFunction;
import java.util.function.IntPredicate;
import org.jspecify.annotations.Nullable;

/**
 * The tensors of a load, in its order, in batches that one call reads. They become longer while
 * that goes quickly: the end of each costs an SSD half a millisecond; and shorter where it does
 * not: a load is cancelled, and tells how far it is, between two of them. For one thread.
 */
final class Batches {
  /** Of the first batches, bytes at most. */
  static final long BYTES = 256 << 20;

  /** Of a batch: each is a range by itself. */
  static final long MOST_ROWS = 256 << 10;

  private static final long MOST_BYTES = 2L << 30;
  private static final long QUICK_NANOS = TimeUnit.MILLISECONDS.toNanos(100);
  private static final long SLOW_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final LoadPlan plan;
  private final IntPredicate wanted;
  private final IntFunction<DeviceBuffer> memory;
  private final long least;
  private long most;
  private int next;

  /**
   * From the first tensor on.
   *
   * @param wanted whether a tensor is to be read
   * @param memory of an allocation, by its number
   * @param most bytes of a batch at first; a longer tensor is one by itself
   */
  Batches(LoadPlan plan, IntPredicate wanted, IntFunction<DeviceBuffer> memory, long most) {
    this.plan = plan;
    this.wanted = wanted;
    this.memory = memory;
    this.least = most;
    this.most = most;
  }

  /**
   * What is read by one call: tensors that lie in one file.
   *
   * @param members which tensors
   * @param first one of them
   * @param targets the memory that the ranges name
   * @param bytes of all of them
   */
  record Batch(
      List<Integer> members, Place first, List<DeviceBuffer> targets, Ranges ranges, long bytes) {}

  /** The next batch; null if there is none. */
  @Nullable Batch next() {
    int all = plan.places().size();
    while (next < all && !wanted.test(next)) {
      next++;
    }
    if (next == all) {
      return null;
    }
    Place first = plan.places().get(next);
    Ranges.Builder ranges = Ranges.builder();
    List<Integer> members = new ArrayList<>();
    List<DeviceBuffer> targets = new ArrayList<>();
    long bytes = 0;
    long rows = 0;
    for (; next < all; next++) {
      Place p = plan.places().get(next);
      boolean full =
          !members.isEmpty()
              && (bytes + p.part().bytes() > most || rows + p.part().rows() > MOST_ROWS);
      if (full || p.part().file() != first.part().file()) {
        break;
      }
      if (wanted.test(next)) {
        DeviceBuffer target = memory.apply(p.allocation());
        if (targets.isEmpty() || targets.getLast() != target) {
          targets.add(target);
        }
        add(p, ranges, targets.size() - 1);
        members.add(next);
        bytes += p.part().bytes();
        rows += p.part().rows();
      }
    }
    return new Batch(members, first, targets, ranges.build(), bytes);
  }

  private static void add(Place p, Ranges.Builder ranges, int target) {
    Part part = p.part();
    for (long row = 0; row < part.rows() && part.width() > 0; row++) {
      ranges.join(
          part.offset() + row * part.pitch(),
          part.width(),
          target,
          p.offset() + row * part.width());
    }
  }

  /** A batch was read, from its submission to its end in so many ns. */
  void took(Batch batch, long nanos) {
    if (batch.bytes > most / 2 && nanos < QUICK_NANOS) {
      most = Math.min(MOST_BYTES, 2 * most);
    } else if (nanos > SLOW_NANOS) {
      most = Math.max(least, most / 2);
    }
  }
}
