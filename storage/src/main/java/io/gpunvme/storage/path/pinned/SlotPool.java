package io.gpunvme.storage.path.pinned;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.ScopedLock;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Condition;
import org.jspecify.annotations.Nullable;

/**
 * The part of the pinned memory that a path may use: slots are taken from the {@link SlotStock}, up
 * to the most there may be, and given back to it as soon as a load is done with them. Safe for all
 * threads.
 */
final class SlotPool {
  private final String source;
  private final SlotStock stock;
  private final int chunk;
  private final ScopedLock lock = new ScopedLock();
  private final Condition given = lock.newCondition();

  // Guarded by the lock.
  private int inUse;
  private int peak;
  private int most;
  private int waiting;

  SlotPool(String source, SlotStock stock, int chunk, long ringBytes) {
    this.source = source;
    this.stock = stock;
    this.chunk = chunk;
    most = Math.toIntExact(Math.min(ringBytes / chunk, Integer.MAX_VALUE));
  }

  /** A slot, or null if all are in use or somebody has waited longer. */
  @Nullable PinnedSlot tryAcquire() {
    try (var _ = lock.hold()) {
      return waiting > 0 ? null : next();
    }
  }

  /**
   * A slot; waits for one. Only for those who hold none.
   *
   * @throws StorageException {@link Kind#ACCELERATOR_MEMORY} if not even one can be allocated
   */
  PinnedSlot acquire() {
    try (var _ = lock.hold()) {
      waiting++;
      try {
        PinnedSlot slot = next();
        while (slot == null) {
          given.awaitUninterruptibly();
          slot = next();
        }
        return slot;
      } finally {
        waiting--;
      }
    }
  }

  private @Nullable PinnedSlot next() {
    if (inUse >= most) {
      return null;
    }
    try {
      PinnedSlot slot = stock.take(chunk);
      inUse++;
      peak = Math.max(peak, inUse);
      return slot;
    } catch (CudaException | PosixException e) {
      if (inUse == 0) {
        String what = "%d bytes of pinned memory: %s".formatted(chunk, e.getMessage());
        throw new StorageException(Kind.ACCELERATOR_MEMORY, source, -1, -1, what, e);
      }
      // There is no room for more: what there is must do.
      most = inUse;
      return null;
    }
  }

  /** Has the stock have as many as may be in use, where there is memory for them. */
  void fill() {
    List<PinnedSlot> all = new ArrayList<>();
    try {
      for (PinnedSlot slot = tryAcquire(); slot != null; slot = tryAcquire()) {
        all.add(slot);
      }
    } finally {
      CloseAll.each(all, this::release);
    }
  }

  /** Gives a slot back; nothing is at work in it. */
  void release(PinnedSlot slot) {
    try {
      stock.give(slot);
    } finally {
      // After it, so that whoever waits finds this one.
      try (var _ = lock.hold()) {
        inUse--;
        given.signal();
      }
    }
  }

  /** Slots that are in use. */
  int inUse() {
    try (var _ = lock.hold()) {
      return inUse;
    }
  }

  /** Bytes of pinned memory that were in use at the same time, at most. */
  long peakBytes() {
    try (var _ = lock.hold()) {
      return (long) peak * chunk;
    }
  }
}
