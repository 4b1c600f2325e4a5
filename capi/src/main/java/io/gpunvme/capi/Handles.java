package io.gpunvme.capi;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Numbers for objects: what C has in place of references. A number is never used again, so that one
 * of something closed is told from all others. Safe for all threads.
 */
final class Handles {
  /** What stays open where closing it fails, so that it can be tried again. */
  interface ClosedAgain extends AutoCloseable {}

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

  /**
   * Closes the object of a handle, which ends the handle; of several threads one does it. If that
   * fails, the handle of a {@link ClosedAgain} stays.
   *
   * @throws ClosedHandleException if there is none
   */
  void close(long handle) throws Exception {
    AutoCloseable object = open.remove(handle);
    if (object == null) {
      throw new ClosedHandleException("handle %Xh was closed, or never was one".formatted(handle));
    }
    try {
      object.close();
    } catch (Throwable e) {
      if (object instanceof ClosedAgain) {
        open.put(handle, object);
      }
      throw e;
    }
  }

  /** How many are open. */
  int count() {
    return open.size();
  }
}
