package io.gpunvme.storage.layer;

import io.gpunvme.base.Uninterrupted;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.layer.LayerException.Reason;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The thread that starts a ring's reads, in the order in which layers got their slots.
 *
 * @param <S> streams
 */
final class RingReader<S> {
  /** How often a stream is asked whether it is done with a slot that is needed. */
  private static final long NAP_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

  private final RingState<S> state;
  private final LayerSource source;
  private final DeviceBuffer memory;
  private final LayerOptions options;
  private final Thread thread;

  /** When the last read ended. */
  private long lastEnd = System.nanoTime();

  RingReader(RingState<S> state, LayerSource source, DeviceBuffer memory, LayerOptions options) {
    this.state = state;
    this.source = source;
    this.memory = memory;
    this.options = options;
    thread = Thread.ofPlatform().daemon().name("gpunvme-layers").unstarted(this::run);
  }

  void start() {
    thread.start();
  }

  private void run() {
    try {
      for (Ticket<S> ticket = next(); ticket != null; ticket = next()) {
        read(ticket);
      }
    } catch (Throwable e) {
      // Nobody reads any more, and nobody is to wait for that.
      state.end(Reason.READ, "the thread that reads layers has ended: " + e, e);
    }
  }

  // ---- which

  /** The next read to start; waits for one. Null when there will be none any more. */
  private @Nullable Ticket<S> next() {
    try (var _ = state.lock.hold()) {
      while (!state.closing) {
        boolean room = state.reads < options.reads();
        Ticket<S> ticket = room ? firstFree() : null;
        if (ticket != null) {
          state.waiting.remove(ticket);
          ticket.place().reading = ticket;
          ticket.began = System.nanoTime();
          state.reads++;
          return ticket;
        }
        long left = endPatience();
        // The end of a stream's work wakes nobody.
        boolean asking = room && !candidates().isEmpty();
        state.changed.awaitNanos(asking ? NAP_NANOS : left);
      }
      return null;
    } catch (InterruptedException e) {
      // Nobody has a reason to interrupt this thread.
      throw new IllegalStateException(e);
    }
  }

  /** The first ones: there is at most one read for each slot that can be started. */
  private List<Ticket<S>> candidates() {
    return state.waiting.stream()
        .limit(state.slots.size())
        .filter(ticket -> ticket.place().reading == null)
        .toList();
  }

  private @Nullable Ticket<S> firstFree() {
    for (Ticket<S> ticket : candidates()) {
      if (isFree(ticket)) {
        return ticket;
      }
    }
    return null;
  }

  private boolean isFree(Ticket<S> ticket) {
    Ticket<S> before = ticket.before;
    if (before == null) {
      return true;
    }
    try {
      if (!state.isOver(before)) {
        return false;
      }
      ticket.before = null;
      return true;
    } catch (RuntimeException | Error e) {
      // Nobody will ever know when the work with the slot is over: the accelerator is broken.
      state.fail(ticket, Reason.READ, String.valueOf(e.getMessage()), e);
      return false;
    }
  }

  /** Lets streams go on that have waited too long; ns until that is to be asked again. */
  private long endPatience() {
    long patience = options.patience().toNanos();
    long next = Long.MAX_VALUE;
    for (LayerSlot<S> slot : state.slots) {
      Ticket<S> ticket = slot.reading;
      if (ticket == null || !ticket.gated || ticket.done) {
        continue;
      }
      long left = patience - (System.nanoTime() - ticket.began);
      if (left > 0) {
        next = Math.min(next, left);
      } else {
        state.fail(
            ticket,
            Reason.STALLED,
            "a stream waited %d ms for it and goes on without it; if the read continues only now, take layers without a stream"
                .formatted(options.patience().toMillis()),
            null);
      }
    }
    return next;
  }

  // ---- how

  private void read(Ticket<S> ticket) {
    CompletableFuture<?> read;
    try {
      read = source.read(ticket.layer, memory, ticket.place().offset);
    } catch (RuntimeException | Error e) {
      // Also an Error: this thread goes on, or nobody waiting for a layer would hear anything.
      ended(ticket, e);
      return;
    }
    if (!isWanted(ticket, read)) {
      read.cancel(true);
    }
    var _ = read.whenComplete((_, failure) -> ended(ticket, cause(failure)));
  }

  /** Tells others of the read; false if they want none any more. */
  private boolean isWanted(Ticket<S> ticket, CompletableFuture<?> read) {
    try (var _ = state.lock.hold()) {
      ticket.read = read;
      return !ticket.done;
    }
  }

  private static @Nullable Throwable cause(@Nullable Throwable failure) {
    return failure instanceof CompletionException && failure.getCause() != null
        ? failure.getCause()
        : failure;
  }

  private void ended(Ticket<S> ticket, @Nullable Throwable failure) {
    try (var _ = state.lock.hold()) {
      long now = System.nanoTime();
      ticket.readNanos = now - Math.max(ticket.began, lastEnd);
      lastEnd = now;
      state.reads--;
      ticket.place().reading = null;
      if (failure != null) {
        state.fail(ticket, Reason.READ, String.valueOf(failure.getMessage()), failure);
      } else if (!ticket.done) {
        state.finish(ticket);
      }
      state.changed.signalAll();
    }
  }

  /** Asks a read that was started to end. */
  static void cancel(Ticket<?> ticket) {
    CompletableFuture<?> read = ticket.read;
    if (read != null) {
      read.cancel(true);
    }
  }

  /** Returns when the thread is over. */
  void join() {
    Uninterrupted.join(thread);
  }
}
