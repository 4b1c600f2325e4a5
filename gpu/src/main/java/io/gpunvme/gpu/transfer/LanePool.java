package io.gpunvme.gpu.transfer;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.Uninterrupted;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Objects;
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
  private final Deque<Waiter> waiters = new ArrayDeque<>();

  /** Those that were made for short transfers; a longer list takes the place of this one. */
  private volatile List<QueueLane> made = List.of();

  /** Short lanes that may still be made. */
  private int shortLeft;

  /** Lanes in use that their transfers give back soon. */
  private int promised;

  /** Long lanes in use, and short ones that are being made. */
  private int inUse;

  private volatile boolean closed;

  /** {@code waiters.size() > promised}, for those who look often. */
  private volatile boolean wanted;

  /** Whether a short transfer waits, for those who give back a short lane. */
  private volatile boolean shortWaits;

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
   * Takes a lane for a short transfer; waits until there is one. No lock is taken while there are
   * as many lanes as threads.
   *
   * @param listener asked now and then, while this waits, whether the transfer goes on
   * @throws io.gpunvme.nvme.CommandAbortedException if it does not
   * @throws IllegalStateException if this is closed, or is closed while it waits
   */
  QueueLane takeShort(TransferListener listener) {
    QueueLane free = claim();
    return free == null ? awaitShort(listener) : free;
  }

  private QueueLane awaitShort(TransferListener listener) {
    Wish wish = new Wish(listener);
    QueueLane lane = take(true, wish);
    if (lane != null && wish.failed()) {
      give(lane, false);
    }
    wish.throwIfFailed();
    return Objects.requireNonNull(lane);
  }

  /** A short transfer that has no lane yet. */
  private static final class Wish extends EarlyEnd {
    private final TransferListener listener;

    Wish(TransferListener listener) {
      this.listener = listener;
    }

    @Override
    TransferListener listener() {
      return listener;
    }
  }

  /** A free short lane, or null: a wide one if there is any. */
  private @Nullable QueueLane claim() {
    List<QueueLane> lanes = made;
    QueueLane lane = claim(lanes, true);
    return lane == null ? claim(lanes, false) : lane;
  }

  /** Threads begin to look at different ones. */
  private @Nullable QueueLane claim(List<QueueLane> lanes, boolean wide) {
    int at = lanes.isEmpty() ? 0 : (int) (Thread.currentThread().threadId() % lanes.size());
    for (int i = 0; i < lanes.size(); i++) {
      QueueLane lane = lanes.get(at);
      if (lane.isWide() == wide && lane.claim().take()) {
        // Closing says so before it looks at the lanes, so one of the two sees the other.
        if (closed) {
          give(lane, false);
          throw closedException();
        }
        return lane;
      }
      at = at + 1 == lanes.size() ? 0 : at + 1;
    }
    return null;
  }

  /**
   * Takes a lane for a long transfer; waits until there is one.
   *
   * @param job asked now and then whether it still goes on
   * @return null if the job has failed meanwhile
   * @throws IllegalStateException if this is closed, or is closed while it waits
   */
  @Nullable QueueLane take(TransferJob job) {
    return take(false, job);
  }

  private @Nullable QueueLane take(boolean isShort, EarlyEnd transfer) {
    Waiter waiter = null;
    synchronized (this) {
      requireOpen();
      if (isShort && shortLeft > 0) {
        shortLeft--;
        inUse++;
      } else if (waiters.isEmpty() && !freeLong.isEmpty()) {
        // Who waits already is first.
        return used(freeLong.pop());
      } else {
        waiter = new Waiter(isShort);
        waiters.add(waiter);
        look();
      }
    }
    if (waiter == null) {
      return make(transfer);
    }
    if (isShort) {
      handOverFree();
    }
    return await(waiter, transfer);
  }

  /** A free lane for a long transfer, or null. */
  synchronized @Nullable QueueLane tryTake() {
    QueueLane free = closed || !waiters.isEmpty() ? null : freeLong.poll();
    return free == null ? null : used(free);
  }

  private QueueLane used(QueueLane lane) {
    inUse++;
    return lane;
  }

  /** Another short lane; without the lock, for the controller is asked. */
  private @Nullable QueueLane make(EarlyEnd transfer) {
    QueueLane lane = null;
    boolean noneLeft = false;
    try {
      lane = shortLanes.get();
      lane.claim().take();
    } catch (InvalidRequestException e) {
      // Others have all queue pairs. Short transfers wait in turn with the long ones from now on.
      noneLeft = true;
    } finally {
      made(lane, noneLeft);
    }
    if (lane != null) {
      return lane;
    }
    QueueLane free = claim();
    return free == null ? take(true, transfer) : free;
  }

  private synchronized void made(@Nullable QueueLane lane, boolean noneLeft) {
    inUse--;
    if (lane == null) {
      shortLeft = noneLeft ? 0 : shortLeft + 1;
    } else {
      all.add(lane);
      List<QueueLane> more = new ArrayList<>(made);
      more.add(lane);
      made = List.copyOf(more);
    }
    notifyAll();
  }

  private @Nullable QueueLane await(Waiter waiter, EarlyEnd transfer) {
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
          transfer.cancel();
        }
        transfer.cancelIfAsked();
        if (transfer.failed() && leave(waiter)) {
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
  void give(QueueLane lane, boolean asPromised) {
    if (lane.isForShort()) {
      giveShort(lane);
    } else {
      giveLong(lane, asPromised);
    }
  }

  private void giveShort(QueueLane lane) {
    if (shortWaits && handOver(lane)) {
      return;
    }
    lane.claim().release();
    // Who began to wait meanwhile, or to close, may have looked at it too early.
    if (shortWaits) {
      handOverFree();
    }
    if (closed) {
      wake();
    }
  }

  /** Whether somebody who waited has it now. */
  private synchronized boolean handOver(QueueLane lane) {
    Waiter next = next(lane);
    if (next == null) {
      return false;
    }
    next.lane = lane;
    LockSupport.unpark(next.thread);
    look();
    return true;
  }

  /** Gives those who wait the short lanes that are free. */
  private synchronized void handOverFree() {
    for (QueueLane lane : made) {
      if (shortWaits && lane.claim().take() && !handOver(lane)) {
        lane.claim().release();
      }
    }
  }

  private synchronized void giveLong(QueueLane lane, boolean asPromised) {
    if (asPromised) {
      promised--;
    }
    if (!handOver(lane)) {
      inUse--;
      freeLong.push(lane);
      notifyAll();
      look();
    }
  }

  private synchronized void wake() {
    notifyAll();
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
    shortWaits = waiters.stream().anyMatch(waiter -> waiter.isShort);
  }

  /**
   * @throws IllegalStateException after {@link #close}
   */
  void requireOpen() {
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
    Uninterrupted.await(
        this, () -> inUse == 0 && made.stream().allMatch(lane -> lane.claim().holder() == null));
    List<QueueLane> lanes = List.copyOf(all);
    all.clear();
    return lanes;
  }
}
