package io.gpunvme.storage;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.ScopedLock;
import io.gpunvme.base.Uninterrupted;
import io.gpunvme.gpu.accel.GpuAccelerator;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import org.jspecify.annotations.Nullable;

/**
 * The pinned memory that all transfers of a storage in the order of streams go through. Safe for
 * all threads.
 */
final class StreamSlots implements AutoCloseable {
  /** Bytes of a slot: the longest piece of a transfer. */
  static final long BYTES = 4 << 20;

  /** How many there are. */
  static final int COUNT = 8;

  /** Nobody tells that a stream has come past an event, so it is asked, less and less often. */
  private static final long SHORTEST_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

  private static final long LONGEST_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private final String name;
  private final ScopedLock lock = new ScopedLock();
  private final Condition changed = lock.newCondition();

  /** Not in use by a transfer, though perhaps by a stream still. */
  private final Deque<StreamSlot> free = new ArrayDeque<>();

  private boolean closed;

  /**
   * Allocates all of them, before any stream waits: the driver may wait for that stream to allocate
   * more.
   *
   * @param name the storage's, in messages
   */
  StreamSlots(GpuAccelerator accelerator, String name) {
    this.name = name;
    try {
      for (int i = 0; i < COUNT; i++) {
        free.add(new StreamSlot(accelerator, BYTES));
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, free, StreamSlot::close);
      throw e;
    }
  }

  /**
   * A slot that no stream uses any more. Waits while there is none; a stream that does not move
   * keeps its slots, and nothing but these, from those who wait.
   *
   * @return to be given back in every case
   * @throws IllegalStateException if they are closed, or come to be meanwhile
   */
  StreamSlot take() {
    try (var _ = lock.hold()) {
      long nanos = SHORTEST_NANOS;
      StreamSlot slot = poll();
      while (slot == null) {
        if (free.isEmpty()) {
          changed.awaitUninterruptibly();
        } else {
          Uninterrupted.await(changed, nanos);
          nanos = Math.min(2 * nanos, LONGEST_NANOS);
        }
        slot = poll();
      }
      return slot;
    }
  }

  private @Nullable StreamSlot poll() {
    if (closed) {
      throw new StorageClosedException(name);
    }
    for (StreamSlot slot : free) {
      if (slot.isUsed()) {
        free.remove(slot);
        return slot;
      }
    }
    return null;
  }

  /** The transfer does not use it any more; a stream whose event is recorded may. */
  void giveBack(StreamSlot slot) {
    try (var _ = lock.hold()) {
      free.addLast(slot);
      changed.signalAll();
    }
  }

  /** None is given out any more. */
  void refuse() {
    try (var _ = lock.hold()) {
      closed = true;
      changed.signalAll();
    }
  }

  /** Waits for the streams and frees all; each was given back. Idempotent. */
  @Override
  public void close() {
    refuse();
    CloseAll steps = new CloseAll();
    for (StreamSlot slot = free.poll(); slot != null; slot = free.poll()) {
      steps.run(slot::awaitUse);
      steps.run(slot::close);
    }
    steps.<RuntimeException>end();
  }
}
