package io.gpunvme.capi;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Numbers for objects: what C has in place of references. A number is never used again, so that one
 * of something closed is told from all others. Safe for all threads.
 */
final class Handles {
  /** Far from addresses that could be mistaken for one. */
  private static final long FIRST = 0x6E76_0000_0001L;

  private final AtomicLong next = new AtomicLong(FIRST);
  private final Map<Long, AutoCloseable> open = new ConcurrentHashMap<>();

  long add(AutoCloseable object) {
    long handle = next.getAndIncrement();
    open.put(handle, object);
    return handle;
  }

  /**
   * The object of a handle.
   *
   * @throws ClosedHandleException if there is none, or it is something else
   */
  <T> T get(long handle, Class<T> type) {
    AutoCloseable object = open.get(handle);
    if (!type.isInstance(object)) {
      throw new ClosedHandleException(
          object == null
              ? "handle %Xh was closed, or never was one".formatted(handle)
              : "handle %Xh is not of type %s".formatted(handle, type.getSimpleName()));
    }
    return type.cast(object);
  }

  /** Takes a handle out: only one thread gets its object. */
  AutoCloseable remove(long handle) {
    AutoCloseable object = open.remove(handle);
    if (object == null) {
      throw new ClosedHandleException("handle %Xh was closed, or never was one".formatted(handle));
    }
    return object;
  }

  /** How many are open. */
  int count() {
    return open.size();
  }
}
