package io.gpunvme.cuda;

import java.util.concurrent.atomic.AtomicInteger;

/**
 * Keeps an object from being freed while a call uses it. Never blocks: ending while somebody uses
 * the object is refused, using it after the end too.
 */
final class Lifetime {
  private static final int ENDED = -1;

  private final String what;
  private final AtomicInteger users = new AtomicInteger();

  /** {@code what} names the object in errors. */
  Lifetime(String what) {
    this.what = what;
  }

  /**
   * Comes before each use, {@link #release} after it.
   *
   * @throws IllegalStateException if the object is closed
   */
  void acquire() {
    int count;
    do {
      count = users.get();
      if (count == ENDED) {
        throw closed();
      }
    } while (!users.compareAndSet(count, count + 1));
  }

  /** For what needs no call. */
  void requireOpen() {
    if (users.get() == ENDED) {
      throw closed();
    }
  }

  void release() {
    users.decrementAndGet();
  }

  /**
   * Ends it.
   *
   * @return false if it had ended already
   * @throws IllegalStateException if a call is using the object
   */
  boolean end() {
    int count = users.compareAndExchange(0, ENDED);
    if (count > 0) {
      throw inUse();
    }
    return count == 0;
  }

  /** Takes {@link #end} back; only for the thread that ended it. */
  void resume() {
    users.set(0);
  }

  private IllegalStateException closed() {
    return new IllegalStateException(what + " is closed");
  }

  IllegalStateException inUse() {
    return new IllegalStateException(
        what + " is in use by another thread: close it again when that call has returned");
  }
}
