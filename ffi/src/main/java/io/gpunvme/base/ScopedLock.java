package io.gpunvme.base;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;

/** A lock that is held as long as a block: {@code try (var _ = lock.hold())}. */
public final class ScopedLock {
  private final ReentrantLock lock = new ReentrantLock();

  /** The same for everybody, so that nothing is allocated. */
  private final Hold hold = lock::unlock;

  /** A lock that nobody has. */
  public ScopedLock() {}

  /** Gives the lock back; by the thread that has it. */
  public interface Hold extends AutoCloseable {
    @Override
    void close();
  }

  /** Waits for the lock. A thread that has it may take it once more. */
  public Hold hold() {
    lock.lock();
    return hold;
  }

  /** A condition for those who have the lock. */
  public Condition newCondition() {
    return lock.newCondition();
  }
}
