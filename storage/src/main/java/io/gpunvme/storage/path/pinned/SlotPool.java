package io.gpunvme.storage.path.pinned;

import io.gpunvme.base.CloseAll;
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
import java.util.concurrent.locks.ReentrantLock;
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
  private final ReentrantLock lock = new ReentrantLock();
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
    lock.lock();
    try {
      return waiting > 0 ? null : next();
    } finally {
      lock.unlock();
    }
  }

  /**
   * A slot; waits for one. Only for those who hold none.
   *
   * @throws StorageException {@link Kind#ACCELERATOR_MEMORY} if not even one can be allocated
   */
  PinnedSlot acquire() {
    lock.lock();
    try {
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
    } finally {
      lock.unlock();
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
    lock.lock();
    try {
      free.addLast(slot);
      given.signal();
    } finally {
      lock.unlock();
    }
  }

  /** Slots that are in use. */
  int inUse() {
    lock.lock();
    try {
      return all.size() - free.size();
    } finally {
      lock.unlock();
    }
  }

  /** The most slots there may be. */
  int capacity() {
    lock.lock();
    try {
      return most;
    } finally {
      lock.unlock();
    }
  }

  /** Bytes of pinned memory allocated. */
  long bytes() {
    lock.lock();
    try {
      return (long) all.size() * chunk;
    } finally {
      lock.unlock();
    }
  }

  /** Frees all; none is in use. */
  @Override
  public void close() {
    lock.lock();
    try {
      most = 0;
      free.clear();
      List<PinnedSlot> slots = List.copyOf(all);
      all.clear();
      CloseAll.each(slots, slot -> CloseAll.all(slot.copied(), slot.memory()));
    } finally {
      lock.unlock();
    }
  }
}
