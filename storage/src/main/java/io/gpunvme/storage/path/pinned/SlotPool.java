package io.gpunvme.storage.path.pinned;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.ScopedLock;
import io.gpunvme.cuda.CudaEvent;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.ffi.PosixException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.locks.Condition;
import org.jspecify.annotations.Nullable;

/**
 * The pinned memory of a path: slots are allocated when one is asked for and none is free, up to
 * the most there may be, and then kept. The last given back is the next taken, since the caches may
 * still hold it. Safe for all threads.
 */
final class SlotPool implements AutoCloseable {
  private final String source;
  private final Accelerator accelerator;
  private final int chunk;
  private final ScopedLock lock = new ScopedLock();
  private final Condition given = lock.newCondition();

  // Guarded by the lock.
  private final List<PinnedSlot> all = new ArrayList<>();
  private final Deque<PinnedSlot> free = new ArrayDeque<>();
  private int most;
  private int waiting;

  SlotPool(String source, Accelerator accelerator, int chunk, long ringBytes) {
    this.source = source;
    this.accelerator = accelerator;
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
    PinnedSlot slot = free.pollLast();
    if (slot != null || all.size() >= most) {
      return slot;
    }
    try {
      PinnedSlot added = allocate();
      all.add(added);
      return added;
    } catch (CudaException | PosixException e) {
      if (all.isEmpty()) {
        String what = "%d bytes of pinned memory: %s".formatted(chunk, e.getMessage());
        throw new StorageException(Kind.ACCELERATOR_MEMORY, source, -1, -1, what, e);
      }
      // There is no room for more: what there is must do.
      most = all.size();
      return null;
    }
  }

  private PinnedSlot allocate() {
    DeviceBuffer memory = accelerator.allocatePinned(chunk);
    try {
      CudaEvent copied = accelerator.cuda().map(gpu -> gpu.context().event()).orElse(null);
      return new PinnedSlot(memory, memory.segment().asSlice(0, chunk), copied);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, memory::close);
      throw e;
    }
  }

  /** Gives a slot back; nothing is at work in it. */
  void release(PinnedSlot slot) {
    try (var _ = lock.hold()) {
      free.addLast(slot);
      given.signal();
    }
  }

  /** Slots that are in use. */
  int inUse() {
    try (var _ = lock.hold()) {
      return all.size() - free.size();
    }
  }

  /** The most slots there may be. */
  int capacity() {
    try (var _ = lock.hold()) {
      return most;
    }
  }

  /** Bytes of pinned memory allocated. */
  long bytes() {
    try (var _ = lock.hold()) {
      return (long) all.size() * chunk;
    }
  }

  /** Frees all; none is in use. */
  @Override
  public void close() {
    try (var _ = lock.hold()) {
      most = 0;
      free.clear();
      List<PinnedSlot> slots = List.copyOf(all);
      all.clear();
      CloseAll.each(slots, slot -> CloseAll.all(slot.copied(), slot.memory()));
    }
  }
}
