package io.gpunvme.sim;

import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * The commands of one worker that have to wait, ordered by when they are due: a binary heap that
 * grows and never allocates otherwise. Guarded by the worker's lock.
 */
final class CommandScheduler {
  private static final int INITIAL = 256;

  private @Nullable SimCommand[] heap = new SimCommand[INITIAL];
  private int size;
  private long nextOrder;

  /** Adds a command; its {@code due} is set. Equal times keep the order of their adding. */
  void add(SimCommand c) {
    if (size == heap.length) {
      heap = Arrays.copyOf(heap, size * 2);
    }
    c.order = nextOrder++;
    siftUp(size++, c);
  }

  /** Removes and returns a command that is due, the earliest first; null if none is. */
  @Nullable SimCommand takeDue(long now) {
    SimCommand c = heap[0];
    if (c == null || now - c.due < 0) {
      return null;
    }
    remove(c);
    return c;
  }

  /** Whether nothing waits. */
  boolean isEmpty() {
    return size == 0;
  }

  /** Nanoseconds until the earliest command is due; not to be asked when empty. */
  long untilNext(long now) {
    return at(0).due - now;
  }

  /** Removes a command if it is here. */
  void remove(SimCommand c) {
    int i = c.heapIndex;
    if (i == SimCommand.NOT_SCHEDULED) {
      return;
    }
    c.heapIndex = SimCommand.NOT_SCHEDULED;
    SimCommand moved = at(--size);
    heap[size] = null;
    if (moved != c) {
      if (i > 0 && before(moved, at((i - 1) >>> 1))) {
        siftUp(i, moved);
      } else {
        siftDown(i, moved);
      }
    }
  }

  private void siftUp(int hole, SimCommand c) {
    int i = hole;
    while (i > 0) {
      int parent = (i - 1) >>> 1;
      SimCommand p = at(parent);
      if (!before(c, p)) {
        break;
      }
      put(i, p);
      i = parent;
    }
    put(i, c);
  }

  private void siftDown(int hole, SimCommand c) {
    int i = hole;
    while (2 * i + 1 < size) {
      int child = 2 * i + 1;
      if (child + 1 < size && before(at(child + 1), at(child))) {
        child++;
      }
      SimCommand smaller = at(child);
      if (!before(smaller, c)) {
        break;
      }
      put(i, smaller);
      i = child;
    }
    put(i, c);
  }

  private void put(int i, SimCommand c) {
    heap[i] = c;
    c.heapIndex = i;
  }

  private SimCommand at(int i) {
    SimCommand c = heap[i];
    if (c == null) {
      throw new IllegalStateException("hole in the heap at " + i + " of " + size);
    }
    return c;
  }

  /** Time wraps around, so differences are compared. */
  private static boolean before(SimCommand a, SimCommand b) {
    long d = a.due - b.due;
    return d < 0 || (d == 0 && a.order - b.order < 0);
  }
}
