package io.gpunvme.storage;

import io.gpunvme.base.Uninterrupted;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Transfers that are submitted one by one and carried out together: all submissions that arrive
 * while a transfer runs form the next transfer. Each submission gets its own outcome. Safe for all
 * threads.
 *
 * <p>The submissions of a batch may be carried out in any order, except that a change between
 * reading and writing waits for all earlier submissions.
 */
public final class Batch implements AutoCloseable {
  private static final int MOST = 1 << 16;

  private final GpuStorage storage;
  private final Deque<Entry> waiting = new ArrayDeque<>();
  private final BlockingQueue<Outcome> over = new LinkedBlockingQueue<>();
  private long submitted;
  private long delivered;
  private boolean pumping;
  private boolean cancelled;
  private @Nullable PathCall current;

  Batch(GpuStorage storage) {
    this.storage = storage;
  }

  private record Entry(long id, Direction direction, Range range) {}

  /**
   * The outcome of one submission.
   *
   * @param id as {@link #read} or {@link #write} returned it
   * @param range the range to move
   * @param failure null if all of it was moved
   */
  public record Outcome(long id, Range range, @Nullable RuntimeException failure) {
    /** Whether all bytes were moved. */
    public boolean ok() {
      return failure == null;
    }
  }

  /**
   * Submits a read.
   *
   * @return its number in this batch, counted from 0
   * @throws IllegalStateException if the batch was cancelled or closed, or its storage was closed
   * @throws java.util.concurrent.RejectedExecutionException if the system has no thread left
   */
  public long read(long offset, DeviceBuffer buffer, long bufferOffset, long length) {
    return submit(Direction.READ, new Range(offset, buffer, bufferOffset, length));
  }

  /** Submits a write; as {@link #read}. */
  public long write(long offset, DeviceBuffer buffer, long bufferOffset, long length) {
    return submit(Direction.WRITE, new Range(offset, buffer, bufferOffset, length));
  }

  private synchronized long submit(Direction direction, Range range) {
    if (cancelled) {
      throw new IllegalStateException("this batch was cancelled");
    }
    if (!pumping) {
      // Nothing is submitted if there is nobody to do it: the storage is closed, or has no thread.
      storage.execute(this::pump);
      pumping = true;
    }
    long id = submitted++;
    waiting.addLast(new Entry(id, direction, range));
    return id;
  }

  /**
   * The outcomes since the last call.
   *
   * @param atLeast wait for this many, or until all submissions are over
   * @param limit wait no longer than this
   * @return in the order in which they ended; fewer than {@code atLeast} if the time is up
   * @throws InterruptedException nothing is lost; the next call has it
   */
  public List<Outcome> poll(int atLeast, Duration limit) throws InterruptedException {
    long end = System.nanoTime() + limit.toNanos();
    List<Outcome> found = new ArrayList<>();
    over.drainTo(found);
    while (found.size() < atLeast && found.size() < outstanding()) {
      Outcome next = over.poll(end - System.nanoTime(), TimeUnit.NANOSECONDS);
      if (next == null) {
        break;
      }
      found.add(next);
      over.drainTo(found);
    }
    synchronized (this) {
      delivered += found.size();
    }
    return found;
  }

  /** Submissions whose outcome {@link #poll} has not returned yet. */
  public synchronized long outstanding() {
    return submitted - delivered;
  }

  /** Asks all running submissions to end early; each still gets its outcome. */
  public synchronized void cancel() {
    cancelled = true;
    if (current != null) {
      current.cancel();
    }
  }

  private Runnable pump() {
    boolean over = false;
    try {
      for (List<Entry> group = next(); !group.isEmpty(); group = next()) {
        carryOut(group);
      }
      over = true;
    } finally {
      if (!over) {
        stopped();
      }
    }
    return () -> {};
  }

  private synchronized void stopped() {
    pumping = false;
    notifyAll();
  }

  /** What is carried out next; empty if nothing waits. */
  private synchronized List<Entry> next() {
    List<Entry> group = new ArrayList<>();
    Entry first = waiting.peekFirst();
    while (first != null
        && group.size() < MOST
        && (group.isEmpty() || group.getFirst().direction() == first.direction())) {
      group.add(waiting.removeFirst());
      first = waiting.peekFirst();
    }
    if (group.isEmpty()) {
      stopped();
    }
    return group;
  }

  private void carryOut(List<Entry> group) {
    RuntimeException failure = attempt(group);
    if (failure == null || group.size() == 1) {
      group.forEach(e -> over.add(new Outcome(e.id(), e.range(), failure)));
      return;
    }
    // Which of them failed is not known: alone, each tells its own story.
    for (Entry e : group) {
      over.add(new Outcome(e.id(), e.range(), attempt(List.of(e))));
    }
  }

  private @Nullable RuntimeException attempt(List<Entry> group) {
    PathCall call = new PathCall(storage.address().toString());
    synchronized (this) {
      current = call;
      if (cancelled) {
        Range r = group.getFirst().range();
        return new StorageException(
            Kind.CANCELLED, call.source(), r.offset(), r.length(), "the batch was cancelled", null);
      }
    }
    try {
      storage.transfer(
          group.getFirst().direction(), group.stream().map(Entry::range).toList(), call);
      return null;
    } catch (RuntimeException e) {
      return e;
    } catch (Error e) {
      return new IllegalStateException("the transfer failed: " + e, e);
    }
  }

  /** Cancels, and returns when nothing uses a buffer any more. Idempotent. */
  @Override
  public void close() {
    cancel();
    synchronized (this) {
      Uninterrupted.await(this, () -> !pumping);
    }
  }
}
