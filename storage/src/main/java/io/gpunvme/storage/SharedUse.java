package io.gpunvme.storage;

import io.gpunvme.storage.path.PathCall;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;

/**
 * Who uses a storage at the moment. Transfers and questions share it; closing ends them, and is
 * alone. Safe for all threads.
 */
final class SharedUse {
  private final String name;
  private final Set<PathCall> running = ConcurrentHashMap.newKeySet();
  private final ReadWriteLock lock = new ReentrantReadWriteLock();
  private volatile boolean closing;
  private boolean closed;

  /**
   * Of a storage that is open.
   *
   * @param name the storage's, in messages
   */
  SharedUse(String name) {
    this.name = name;
  }

  /**
   * Does something with the storage, which stays open meanwhile.
   *
   * @throws StorageClosedException if it is closed or being closed
   */
  <T> T during(Supplier<T> work) {
    lock.readLock().lock();
    try {
      requireOpen();
      return work.get();
    } finally {
      lock.readLock().unlock();
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
  }

  /** Waits for whoever is in it, then frees the storage, once. */
  void close(Runnable free) {
    lock.writeLock().lock();
    try {
      if (!closed) {
        closed = true;
        free.run();
      }
    } finally {
      lock.writeLock().unlock();
    }
  }
}
