package io.gpunvme.cuda;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * A reusable list of copies for {@link CudaStream#copyBatchAsync}. For one thread at a time; it
 * needs no closing.
 */
public final class CopyBatch {
  private final int capacity;
  private final MemorySegment targets;
  private final MemorySegment sources;
  private final MemorySegment sizes;
  private int size;

  /**
   * An empty list.
   *
   * @param capacity the most copies it can have, &gt; 0
   */
  public CopyBatch(int capacity) {
    if (capacity <= 0) {
      throw new IllegalArgumentException("a batch of " + capacity + " copies");
    }
    Arena arena = Arena.ofAuto();
    this.capacity = capacity;
    targets = arena.allocate(JAVA_LONG, capacity);
    sources = arena.allocate(JAVA_LONG, capacity);
    sizes = arena.allocate(JAVA_LONG, capacity);
  }

  /**
   * Adds a copy between device memory, or host memory that is pinned or registered, in any
   * direction. Copies of a batch may be done in any order.
   *
   * @param target device address, or address of host memory
   * @param source likewise
   * @param bytes &gt; 0
   * @throws IllegalStateException if the list is full
   */
  public void add(long target, long source, long bytes) {
    if (bytes <= 0) {
      throw new IllegalArgumentException("a copy of " + bytes + " bytes");
    }
    if (size == capacity) {
      throw new IllegalStateException("the batch has its " + capacity + " copies already");
    }
    targets.setAtIndex(JAVA_LONG, size, target);
    sources.setAtIndex(JAVA_LONG, size, source);
    sizes.setAtIndex(JAVA_LONG, size, bytes);
    size++;
  }

  /** Empties the list; copies already started are not touched. */
  public void clear() {
    size = 0;
  }

  /** Copies added since the last {@link #clear}. */
  public int size() {
    return size;
  }

  /** The most copies it can have. */
  public int capacity() {
    return capacity;
  }

  MemorySegment targets() {
    return targets;
  }

  MemorySegment sources() {
    return sources;
  }

  MemorySegment sizes() {
    return sizes;
  }
}
