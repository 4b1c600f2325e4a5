package io.gpunvme.base;

import java.util.ArrayList;
import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;

/**
 * A lock that many threads share, and that one of them has alone now and then. Those who share it
 * write no common word: each takes a seat, nearly always the one that it had before. So they cost
 * each other nothing, and allocate nothing while there are seats for all. Having it alone is slow:
 * all seats are looked at.
 *
 * <p>A thread that shares it may share it once more, also while another one waits to have it alone.
 *
 * @param <T> what belongs to a seat, for use by whoever has the seat
 */
public final class SharedLock<T> {
  /** At first there are more seats than processors, so that few threads try the same one first. */
  private static final int PER_PROCESSOR = 4;

  private static final int MOST_AT_FIRST = 64;

  private final Supplier<T> belongings;

  /** A power of two of them; a longer list takes the place of this one. */
  private volatile List<Seat<T>> seats;

  /** Somebody has it alone, or waits for the others to leave. */
  private volatile boolean alone;

  /** A place in the lock, of one thread at a time. */
  public static final class Seat<T> {
    private final Claim claim = new Claim();
    private final T belonging;

    private Seat(T belonging) {
      this.belonging = belonging;
    }

    /** What belongs to this seat. */
    public T belonging() {
      return belonging;
    }
  }

  /**
   * A lock that nobody has.
   *
   * @param belongings makes what belongs to a seat
   */
  public SharedLock(Supplier<T> belongings) {
    this.belongings = belongings;
    int processors = Integer.highestOneBit(Runtime.getRuntime().availableProcessors());
    seats = more(List.of(), Math.min(PER_PROCESSOR * processors, MOST_AT_FIRST));
  }

  private List<Seat<T>> more(List<Seat<T>> before, int count) {
    List<Seat<T>> all = new ArrayList<>(before);
    while (all.size() < count) {
      all.add(new Seat<>(belongings.get()));
    }
    return List.copyOf(all);
  }

  /**
   * Shares the lock; waits while another thread has it alone. Whoever has it alone does not call
   * this.
   *
   * @return to be given to {@link #leave}
   */
  public Seat<T> enter() {
    while (true) {
      Seat<T> seat = seat();
      // The seat is taken before this is asked, and alone is set before the seats are looked at:
      // one of the two sees the other.
      if (!alone || seatsOfThisThread() > 1) {
        return seat;
      }
      leave(seat);
      awaitTurn();
    }
  }

  private Seat<T> seat() {
    while (true) {
      List<Seat<T>> all = seats;
      int first = (int) Thread.currentThread().threadId();
      for (int i = 0; i < all.size(); i++) {
        Seat<T> seat = all.get((first + i) & (all.size() - 1));
        if (seat.claim.take()) {
          return seat;
        }
      }
      addSeats(all);
    }
  }

  private synchronized void addSeats(List<Seat<T>> tooFew) {
    if (seats == tooFew) {
      seats = more(tooFew, 2 * tooFew.size());
    }
  }

  /** Gives a seat back. */
  public void leave(Seat<T> seat) {
    seat.claim.release();
    if (alone) {
      wake();
    }
  }

  private synchronized void wake() {
    notifyAll();
  }

  /** Whether this thread shares it. */
  public boolean isShared() {
    return seatsOfThisThread() > 0;
  }

  private int seatsOfThisThread() {
    int count = 0;
    for (Seat<T> seat : seats) {
      if (seat.claim.holder() == Thread.currentThread()) {
        count++;
      }
    }
    return count;
  }

  /** What belongs to the seats, taken or not. */
  public Stream<T> belongings() {
    return seats.stream().map(Seat::belonging);
  }

  /**
   * Waits until nobody else has it, and has it alone until {@link #leaveAlone}.
   *
   * @throws IllegalStateException if this thread shares it, and would wait for itself
   */
  public synchronized void enterAlone() {
    if (isShared()) {
      throw new IllegalStateException("this thread is in the middle of what it would wait for");
    }
    awaitTurn();
    alone = true;
    Uninterrupted.await(this, () -> seats.stream().allMatch(seat -> seat.claim.holder() == null));
  }

  /** Lets others in again; the thread of {@link #enterAlone}. */
  public synchronized void leaveAlone() {
    alone = false;
    notifyAll();
  }

  private synchronized void awaitTurn() {
    Uninterrupted.await(this, () -> !alone);
  }
}
