package io.gpunvme.core.path.direct;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * The lanes of a path: two, so that the SSD has work while a transfer is planned, and while what it
 * brought is looked at. The second is opened when two transfers meet, and not at all where the
 * controller has no queue pairs for it. Safe for all threads.
 */
final class DirectLanes implements AutoCloseable {
  /** How many. */
  static final int MOST = Integer.getInteger("gpunvme.lanes", 2);

  private final Supplier<DirectLane> opener;
  private final List<DirectLane> all = new ArrayList<>();
  private final Deque<DirectLane> free = new ArrayDeque<>();
  private boolean full;
  private boolean alone;
  private int wantAlone;
  private boolean closed;

  /** Opens one. */
  DirectLanes(Supplier<DirectLane> opener) {
    this.opener = opener;
    add();
  }

  private void add() {
    DirectLane lane = opener.get();
    all.add(lane);
    free.add(lane);
  }

  /**
   * A lane of the caller's own, until {@link #give}; waits for one.
   *
   * @throws IllegalStateException if this is closed
   */
  synchronized DirectLane take() {
    boolean interrupted = false;
    while (!closed && (alone || wantAlone > 0 || !grow())) {
      interrupted |= nap();
    }
    restore(interrupted);
    requireOpen();
    return free.pop();
  }

  /** Whether a lane is free, maybe a new one. */
  private boolean grow() {
    if (free.isEmpty() && all.size() < MOST && !full) {
      try {
        add();
      } catch (RuntimeException e) {
        // No queue pairs or no memory for it; what is wrong with the SSD the other one will say.
        full = true;
      }
    }
    return !free.isEmpty();
  }

  synchronized void give(DirectLane lane) {
    // The last one first: what it has described and staged is still there.
    free.push(lane);
    notifyAll();
  }

  /** The first lane while no other is used, until {@link #giveAll}. */
  synchronized DirectLane takeAll() {
    boolean interrupted = false;
    wantAlone++;
    while (!closed && (alone || free.size() < all.size())) {
      interrupted |= nap();
    }
    wantAlone--;
    restore(interrupted);
    requireOpen();
    alone = true;
    return all.getFirst();
  }

  synchronized void giveAll() {
    alone = false;
    notifyAll();
  }

  /** All there are; of who has them all. */
  synchronized List<DirectLane> lanes() {
    return List.copyOf(all);
  }

  synchronized int count() {
    return all.size();
  }

  private void requireOpen() {
    if (closed) {
      notifyAll();
      throw new IllegalStateException("this path is closed");
    }
  }

  private boolean nap() {
    try {
      TimeUnit.SECONDS.timedWait(this, 1);
      return false;
    } catch (InterruptedException e) {
      return true;
    }
  }

  private static void restore(boolean interrupted) {
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Waits for transfers, and closes the lanes. Idempotent. */
  @Override
  public void close() {
    synchronized (this) {
      boolean interrupted = false;
      while (!closed && (alone || free.size() < all.size())) {
        interrupted |= nap();
      }
      restore(interrupted);
      if (closed) {
        return;
      }
      closed = true;
      notifyAll();
    }
    RuntimeException failure = null;
    for (DirectLane lane : all) {
      try {
        lane.close();
      } catch (RuntimeException e) {
        if (failure == null) {
          failure = e;
        } else {
          failure.addSuppressed(e);
        }
      }
    }
    if (failure != null) {
      throw failure;
    }
  }
}
