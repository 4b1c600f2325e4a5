package io.gpunvme.gpu.transfer;

import io.gpunvme.base.InvalidRequestException;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The lanes of a {@link CpuInitiator}, which its transfers share. Safe for all threads.
 *
 * <p>Short transfers have lanes of their own, made when they are needed first, so that none of them
 * waits for a long one. Where the controller has no queue pair for that, and among long transfers,
 * those who wait get the lanes in turn: a long transfer gives one back soon after somebody waits.
 */
final class LanePool {
  /** How long a waiting thread sleeps before it looks whether its transfer was cancelled. */
  private static final long LOOK_NANOS = 5_000_000;

  private final Supplier<QueueLane> shortLanes;
  private final List<QueueLane> all = new ArrayList<>();
  private final Deque<QueueLane> freeLong = new ArrayDeque<>();
  private final Deque<QueueLane> freeShort = new ArrayDeque<>();
  private final Deque<Waiter> waiters = new ArrayDeque<>();

  /** Short lanes that may still be made. */
  private int shortLeft;

  /** Lanes in use that their transfers give back soon. */
  private int promised;

  private int inUse;
  private boolean closed;

  /** {@code waiters.size() > promised}, for those who look often. */
  private volatile boolean wanted;

  /** A thread that waits for a lane. */
  private static final class Waiter {
    final Thread thread = Thread.currentThread();
    final boolean isShort;
    volatile @Nullable QueueLane lane;
    volatile boolean refused;

    Waiter(boolean isShort) {
      this.isShort = isShort;
    }
  }

  /**
   * @param longLanes at least one; all free
   * @param shortLanes makes one; throws an {@link InvalidRequestException} if the controller has no
   *     queue pair left
   * @param mostShort how many it may make
   */
  LanePool(List<QueueLane> longLanes, Supplier<QueueLane> shortLanes, int mostShort) {
    all.addAll(longLanes);
    freeLong.addAll(longLanes);
    this.shortLanes = shortLanes;
    shortLeft = mostShort;
  }

  /**
   * Takes a lane; waits until there is one.
   *
   * @param job asked now and then whether it still goes on
   * @return null if the job has failed meanwhile
   * @throws IllegalStateException if this is closed, or is closed while it waits
   */
  @Nullable QueueLane take(boolean isShort, TransferJob job) {
    Waiter waiter;
    synchronized (this) {
      requireOpen();
      QueueLane free = poll(isShort);
      if (free != null) {
        return used(free);
      }
      if (isShort && shortLeft > 0) {
        shortLeft--;
        inUse++;
        waiter = null;
      } else {
        waiter = new Waiter(isShort);
        waiters.add(waiter);
        look();
      }
    }
    return waiter == null ? make(job) : await(waiter, job);
  }

  /** A free lane for a long transfer, or null. */
  synchronized @Nullable QueueLane tryTake() {
    QueueLane free = closed || !waiters.isEmpty() ? null : freeLong.poll();
    return free == null ? null : used(free);
  }

  private @Nullable QueueLane poll(boolean isShort) {
    // Who waits already is first.
    if (isShort) {
      QueueLane own = freeShort.poll();
      if (own != null || shortLeft > 0) {
        return own;
      }
    }
    return waiters.isEmpty() ? freeLong.poll() : null;
  }

  private QueueLane used(QueueLane lane) {
    inUse++;
    return lane;
  }

  /** Another short lane; without the lock, for the controller is asked. */
  private @Nullable QueueLane make(TransferJob job) {
    QueueLane made = null;
    boolean noneLeft = false;
    try {
      made = shortLanes.get();
    } catch (InvalidRequestException e) {
      // Others have all queue pairs. Short transfers wait in turn with the long ones from now on.
      noneLeft = true;
    } finally {
      made(made, noneLeft);
    }
    return made == null ? take(true, job) : made;
  }

  private synchronized void made(@Nullable QueueLane lane, boolean noneLeft) {
    if (lane != null) {
      all.add(lane);
      return;
    }
    shortLeft = noneLeft ? 0 : shortLeft + 1;
    inUse--;
    notifyAll();
  }

  private @Nullable QueueLane await(Waiter waiter, TransferJob job) {
    boolean interrupted = false;
    try {
      while (true) {
        QueueLane lane = waiter.lane;
        if (lane != null) {
          return lane;
        }
        if (waiter.refused) {
          throw closedException();
        }
        LockSupport.parkNanos(this, LOOK_NANOS);
        interrupted |= Thread.interrupted();
        if (interrupted) {
          job.cancel();
        }
        job.cancelIfAsked();
        if (job.failed() && leave(waiter)) {
          return null;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  /** Whether this waiter has got nothing and gets nothing any more. */
  private synchronized boolean leave(Waiter waiter) {
    boolean left = waiters.remove(waiter);
    look();
    return left;
  }

  /**
   * Asked by a long transfer between two commands: whether it is to give its lane back. If so, it
   * does, soon.
   */
  boolean shouldGiveBack() {
    if (!wanted) {
      return false;
    }
    synchronized (this) {
      if (waiters.size() <= promised) {
        return false;
      }
      promised++;
      look();
      return true;
    }
  }

  /**
   * Gives a lane back.
   *
   * @param asPromised after {@link #shouldGiveBack}
   */
  synchronized void give(QueueLane lane, boolean asPromised) {
    if (asPromised) {
      promised--;
    }
    Waiter next = closed ? null : next(lane);
    if (next == null) {
      inUse--;
      (lane.isForShort() ? freeShort : freeLong).push(lane);
      notifyAll();
    } else {
      next.lane = lane;
      LockSupport.unpark(next.thread);
    }
    look();
  }

  private @Nullable Waiter next(QueueLane lane) {
    for (Waiter waiter : waiters) {
      if (waiter.isShort || !lane.isForShort()) {
        waiters.remove(waiter);
        return waiter;
      }
    }
    return null;
  }

  private void look() {
    wanted = waiters.size() > promised;
  }

  /**
   * @throws IllegalStateException after {@link #close}
   */
  synchronized void requireOpen() {
    if (closed) {
      throw closedException();
    }
  }

  private static IllegalStateException closedException() {
    return new IllegalStateException("this initiator is closed");
  }

  /**
   * Lets nobody in any more and waits until all lanes are given back.
   *
   * @return all lanes; none the second time
   */
  synchronized List<QueueLane> close() {
    closed = true;
    for (Waiter waiter : waiters) {
      waiter.refused = true;
      LockSupport.unpark(waiter.thread);
    }
    waiters.clear();
    look();
    boolean interrupted = false;
    while (inUse > 0) {
      try {
        wait();
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    List<QueueLane> lanes = List.copyOf(all);
    all.clear();
    return lanes;
  }
}
