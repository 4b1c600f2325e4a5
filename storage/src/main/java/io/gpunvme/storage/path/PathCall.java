package io.gpunvme.storage.path;

import io.gpunvme.gpu.transfer.TransferListener;
import java.util.function.BooleanSupplier;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * One transfer as its path sees it: whether it is cancelled, and the counters that it updates. An
 * initiator can have it as its listener.
 */
public final class PathCall implements TransferListener {
  /** How often a transfer's thread asks whether to go on, nanoseconds. */
  public static final long ASKS_NANOS = 10_000_000;

  private final String source;
  private final @Nullable PathCall whole;
  private final @Nullable Caller caller;
  private final @Nullable PartListener listener;

  /** Null until it is known or needed: many transfers wait. */
  private volatile @Nullable PathCounters counters;

  private volatile boolean cancelled;

  /**
   * A transfer that begins.
   *
   * @param source its name in messages, e.g. the file
   */
  public PathCall(String source, PathCounters counters) {
    this(source, counters, null, null, null);
  }

  private PathCall(
      String source,
      @Nullable PathCounters counters,
      @Nullable PathCall whole,
      @Nullable Caller caller,
      @Nullable PartListener listener) {
    this.source = source;
    this.counters = counters;
    this.whole = whole;
    this.caller = caller;
    this.listener = listener;
  }

  /**
   * A transfer that does not know its path yet, and counts for itself until {@link #countIn}.
   *
   * @param source its name in messages
   */
  public PathCall(String source) {
    this(source, null, null, null, null);
  }

  /**
   * As {@link #PathCall(String)}, of a transfer that this thread carries out and may end early.
   *
   * @param cancelled asked by this thread every {@link #ASKS_NANOS} or so
   */
  public PathCall(String source, BooleanSupplier cancelled) {
    this(source, null, null, new Caller(cancelled), null);
  }

  /** Who waits for the transfer, and what it is asked. */
  private static final class Caller {
    private final Thread thread = Thread.currentThread();
    private final BooleanSupplier cancelled;

    /** Of this thread only. */
    private long asked = System.nanoTime();

    Caller(BooleanSupplier cancelled) {
      this.cancelled = cancelled;
    }

    boolean cancels() {
      if (Thread.currentThread() != thread) {
        return false;
      }
      long now = System.nanoTime();
      if (now - asked < ASKS_NANOS) {
        return false;
      }
      boolean answer = cancelled.getAsBoolean();
      asked = System.nanoTime();
      return answer;
    }
  }

  /**
   * A part of this transfer by another path: it ends early if this one does, or if it is cancelled
   * itself. By default it counts where this one does.
   *
   * @param of the part's source, by its name in messages
   */
  public PathCall part(String of) {
    return new PathCall(of, null, this, null, null);
  }

  /**
   * As {@link #part(String)}, and somebody is told what its path does.
   *
   * @param of the part's source, by its name in messages
   */
  public PathCall part(String of, PartListener told) {
    return new PathCall(of, null, this, null, told);
  }

  /** From now on, makes the path count elsewhere. */
  public void countIn(PathCounters other) {
    if (counters != other) {
      set(other);
    }
  }

  private synchronized void set(PathCounters other) {
    counters = other;
  }

  /** The source's name in messages. */
  public String source() {
    return source;
  }

  /** Where the path counts what it does. */
  public PathCounters counters() {
    PathCounters known = counters;
    if (known != null) {
      return known;
    }
    return whole == null ? own() : whole.counters();
  }

  private synchronized PathCounters own() {
    PathCounters known = counters;
    if (known == null) {
      known = new PathCounters();
      counters = known;
    }
    return known;
  }

  /** Counts an operation of a path that records no latencies by itself: it is over. */
  public void operation(long nanos) {
    counters().operation(nanos);
    tell(nanos);
  }

  /** Counts operations that were repeated after a failure that may pass. */
  public void retried(long times) {
    if (times == 0) {
      return;
    }
    counters().retried(times);
    for (PathCall call = this; call != null; call = call.whole) {
      if (call.listener != null) {
        call.listener.retried(times);
      }
    }
  }

  private void tell(long nanos) {
    for (PathCall call = this; call != null; call = call.whole) {
      if (call.listener != null) {
        call.listener.operation(nanos);
      }
    }
  }

  /** A command of an initiator, which records its latency by itself. */
  @Override
  public void completed(int command, long nanos) {
    tell(nanos);
  }

  /** Asks the transfer to end early. Any thread. */
  public void cancel() {
    cancelled = true;
  }

  @Override
  public Histogram latencies() {
    return counters().latencies();
  }

  /** Does nothing: paths count what has arrived, in {@link #counters}. */
  @Override
  public void moved(long bytes) {}

  /** Whether it is to end early. Paths ask before each piece of work, and while they wait. */
  @Override
  public boolean isCancelled() {
    if (cancelled) {
      return true;
    }
    if (caller != null && caller.cancels()) {
      cancel();
      return true;
    }
    return whole != null && whole.isCancelled();
  }

  /**
   * Ends the transfer here if it is to end early.
   *
   * @throws StorageException {@link StorageException.Kind#CANCELLED}
   */
  public void throwIfCancelled(long offset, long length) {
    if (isCancelled()) {
      throw cancelled(offset, length);
    }
  }

  /** The exception of a transfer that was asked to end early. */
  public StorageException cancelled(long offset, long length) {
    return new StorageException(
        StorageException.Kind.CANCELLED, source, offset, length, "cancelled", null);
  }
}
