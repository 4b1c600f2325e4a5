package io.gpunvme.storage;

import io.gpunvme.base.SharedLock;
import io.gpunvme.base.SharedLock.Seat;
import io.gpunvme.storage.path.PathCall;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/**
 * Who uses a storage at the moment. Transfers and questions share it; closing ends them, and is
 * alone. Safe for all threads.
 */
final class SharedUse {
  private final String name;

  /** Calls that others may cancel, too. */
  private final Set<PathCall> running = ConcurrentHashMap.newKeySet();

  /**
   * Each seat has a call for transfers that only closing cancels. It is used again and again; a
   * late cancel reaches nobody, for nobody is let in after it.
   */
  private final SharedLock<PathCall> lock;

  private volatile boolean closing;
  private boolean closed;

  /**
   * Of a storage that is open.
   *
   * @param name the storage's, in messages
   */
  SharedUse(String name) {
    this.name = name;
    lock = new SharedLock<>(() -> new PathCall(name));
  }

  /**
   * The storage stays open until {@link #leave}.
   *
   * @return has a call for a transfer of this thread
   * @throws StorageClosedException if it is closed or being closed
   */
  Seat<PathCall> enter() {
    requireOpen();
    Seat<PathCall> seat = lock.enter();
    // Closing marks itself before it looks at the seats, so one of the two sees the other.
    if (closing) {
      lock.leave(seat);
      throw closedException();
    }
    return seat;
  }

  void leave(Seat<PathCall> seat) {
    lock.leave(seat);
  }

  /**
   * Does something with the storage, which stays open meanwhile.
   *
   * @throws StorageClosedException if it is closed or being closed
   */
  <T> T during(Supplier<T> work) {
    Seat<PathCall> seat = enter();
    try {
      return work.get();
    } finally {
      leave(seat);
    }
  }

  /**
   * Checks, for what is done later.
   *
   * @throws StorageClosedException if it is closed or being closed
   */
  void requireOpen() {
    if (closing) {
      throw closedException();
    }
  }

  StorageClosedException closedException() {
    return new StorageClosedException(name);
  }

  /** A transfer that closing cancels, until it is {@link #ended}. */
  void began(PathCall call) {
    running.add(call);
    // Closing marks itself before it looks for calls, so one of the two sees the other.
    if (closing) {
      call.cancel();
    }
  }

  void ended(PathCall call) {
    running.remove(call);
  }

  /** Lets nobody in any more, and cancels what is under way; does not wait for it. */
  void cancel() {
    closing = true;
    running.forEach(PathCall::cancel);
    lock.belongings().forEach(PathCall::cancel);
  }

  /**
   * Waits for whoever is in it, then frees the storage, once.
   *
   * @throws IllegalStateException if that is this thread
   */
  void close(Runnable free) {
    lock.enterAlone();
    try {
      if (!closed) {
        closed = true;
        free.run();
      }
    } finally {
      lock.leaveAlone();
    }
  }
}
