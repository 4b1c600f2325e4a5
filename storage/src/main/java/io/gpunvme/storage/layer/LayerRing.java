package io.gpunvme.storage.layer;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.layer.LayerException.Reason;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.NoSuchElementException;
import org.jspecify.annotations.Nullable;

/**
 * Slots, who has which, and what is read into them next. A slot goes from layer to layer: given to
 * the first layer without one as soon as its taker has released it, read into when the work that
 * was in the taker's stream then is over and nothing else is read into it.
 *
 * <p>Nothing that may wait is called with the lock held: no driver, no storage.
 *
 * @param <S> streams
 */
final class LayerRing<S> implements AutoCloseable {
  private final DeviceBuffer memory;
  private final LayerStreams<S> streams;
  private final RingState<S> state;
  private final RingReader<S> reader;

  LayerRing(
      LayerSource source,
      DeviceBuffer memory,
      long slotBytes,
      int depth,
      LayerStreams<S> streams,
      LayerOptions options) {
    this.memory = memory;
    this.streams = streams;
    state = new RingState<>(source.name());
    for (int i = 0; i < depth; i++) {
      state.slots.add(new LayerSlot<>(i * slotBytes, streams.gate(i)));
    }
    state.free.addAll(state.slots);
    reader = new RingReader<>(state, source, memory, options);
    reader.start();
  }

  // ---- the caller's side

  void append(Collection<Layer> layers) {
    try (var _ = state.lock.hold()) {
      state.requireOpen();
      for (Layer layer : layers) {
        Ticket<S> ticket = new Ticket<>(layer);
        state.order.add(ticket);
        state.placeless.add(ticket);
      }
      state.place();
    }
  }

  int remaining() {
    try (var _ = state.lock.hold()) {
      return state.order.size();
    }
  }

  /** The next layer, when its bytes are there. */
  Ticket<S> take() {
    try (var _ = state.lock.hold()) {
      return arrived(first());
    }
  }

  private Ticket<S> arrived(Ticket<S> ticket) {
    long begin = System.nanoTime();
    while (!ticket.done) {
      state.changed.awaitUninterruptibly();
    }
    throwIfFailed(ticket);
    state.timings.add(ticket, System.nanoTime() - begin);
    return ticket;
  }

  private void throwIfFailed(Ticket<S> ticket) {
    LayerException failure = ticket.failure;
    if (failure != null) {
      state.giveBack(ticket);
      throw failure;
    }
  }

  /** The next layer; the stream waits for its bytes. */
  Ticket<S> take(S stream) {
    boolean mayWait = mayWait(stream);
    Ticket<S> ticket;
    try (var _ = state.lock.hold()) {
      ticket = first();
      ticket.stream = stream;
      if (ticket.done || !mayWait || state.loads > 0) {
        return arrived(ticket);
      }
      ticket.gated = true;
      state.gated.add(ticket);
      state.calls++;
    }
    try {
      LayerStreams.Use<S> use = streams.use();
      use.begin(stream, ticket.place().gate, ticket.turn);
      ticket.use = use;
      return ticket;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> abandon(ticket));
      throw e;
    } finally {
      endCall();
    }
  }

  private boolean mayWait(S stream) {
    try (var _ = state.lock.hold()) {
      state.requireOpen();
      state.calls++;
    }
    try {
      return streams.mayWait(stream);
    } finally {
      endCall();
    }
  }

  /** Its stream may or may not wait, and nobody uses it; the slot is free when its read is over. */
  private void abandon(Ticket<S> ticket) {
    try (var _ = state.lock.hold()) {
      state.giveBack(ticket);
    }
  }

  private void endCall() {
    try (var _ = state.lock.hold()) {
      state.calls--;
      state.changed.signalAll();
    }
  }

  private Ticket<S> first() {
    state.requireOpen();
    Ticket<S> ticket = state.order.peekFirst();
    if (ticket == null) {
      throw new NoSuchElementException("every layer was taken; name more with prefetch");
    }
    if (ticket.slot == null) {
      throw new IllegalStateException(
          "%s has no slot: taken layers hold all %d; release a layer, or open the loader with more slots"
              .formatted(ticket.layer, state.slots.size()));
    }
    state.order.removeFirst();
    state.held.add(ticket);
    return ticket;
  }

  /** Waits until a taken layer is there. */
  void await(Ticket<S> ticket) {
    try (var _ = state.lock.hold()) {
      while (!ticket.done) {
        state.changed.awaitUninterruptibly();
      }
      LayerException failure = ticket.failure;
      if (failure != null) {
        state.unseen = state.unseen == failure ? null : state.unseen;
        throw failure;
      }
    }
  }

  /** Waits until all taken layers are there; throws the first failure that nobody was told of. */
  void awaitTaken() {
    try (var _ = state.lock.hold()) {
      while (!state.gated.isEmpty()) {
        state.changed.awaitUninterruptibly();
      }
      LayerException failure = state.unseen;
      state.unseen = null;
      if (failure != null) {
        throw failure;
      }
    }
  }

  /**
   * Gives the slot back; once.
   *
   * @param stream whose work with it ends; null: that for which it was taken, if there is one
   */
  void release(Ticket<S> ticket, @Nullable S stream) {
    S by;
    try (var _ = state.lock.hold()) {
      if (state.closing || !state.held.contains(ticket)) {
        return;
      }
      by = stream == null ? ticket.stream : stream;
      if (by == null) {
        state.giveBack(ticket);
        return;
      }
      state.held.remove(ticket);
      state.calls++;
    }
    releaseBy(ticket, by);
  }

  private void releaseBy(Ticket<S> ticket, S stream) {
    boolean ending = false;
    try {
      end(ticket, stream);
      ending = true;
    } finally {
      try (var _ = state.lock.hold()) {
        state.calls--;
        state.held.add(ticket);
        if (ending) {
          state.used.add(ticket);
          state.giveBack(ticket);
        }
        state.changed.signalAll();
      }
    }
  }

  /** Has the stream's use of the layer end with what it has to do now. */
  private LayerStreams.Use<S> end(Ticket<S> ticket, S stream) {
    LayerStreams.Use<S> use = ticket.use;
    if (use == null) {
      use = streams.use();
    }
    use.end(stream);
    ticket.use = use;
    return use;
  }

  boolean isReleased(Ticket<S> ticket) {
    try (var _ = state.lock.hold()) {
      return state.closing || !state.held.contains(ticket);
    }
  }

  /** Keeps streams from being told to wait until {@link #endLoad}; waits for those that are. */
  void beginLoad() {
    try (var _ = state.lock.hold()) {
      state.loads++;
      while (!state.gated.isEmpty()) {
        state.changed.awaitUninterruptibly();
      }
      if (state.closing) {
        endLoad();
      }
      state.requireOpen();
    }
  }

  void endLoad() {
    try (var _ = state.lock.hold()) {
      state.loads--;
      state.changed.signalAll();
    }
  }

  LayerStats stats() {
    try (var _ = state.lock.hold()) {
      if (!state.closed) {
        List.copyOf(state.used).forEach(state::isOver);
      }
      return state.timings.snapshot();
    }
  }

  // ---- the end

  /** Forgets what was not taken. */
  void cancel() {
    List<Ticket<S>> ended = new ArrayList<>();
    try (var _ = state.lock.hold()) {
      ended.addAll(state.order);
      state.order.clear();
      state.placeless.clear();
      for (Ticket<S> ticket : ended) {
        state.fail(ticket, Reason.CANCELLED, "cancelled", null);
        if (ticket.slot != null) {
          state.giveBack(ticket);
        }
      }
    }
    ended.forEach(RingReader::cancel);
  }

  /** Ends everything and waits for it: reads, streams that use slots, the thread. */
  @Override
  public void close() {
    state.end(Reason.CLOSED, "the loader is closed", null).forEach(RingReader::cancel);
    reader.join();
    List<Ticket<S>> users;
    List<Ticket<S>> ending;
    try (var _ = state.lock.hold()) {
      while (state.reads > 0 || state.calls > 0 || state.loads > 0) {
        state.changed.awaitUninterruptibly();
      }
      if (state.closed) {
        return;
      }
      state.closed = true;
      users = List.copyOf(state.held);
      ending = List.copyOf(state.used);
    }
    ending.forEach(ticket -> quietly(() -> awaitOver(ticket)));
    users.forEach(ticket -> quietly(() -> awaitUse(ticket)));
    CloseAll.all(streams, memory);
  }

  private static void awaitOver(Ticket<?> ticket) {
    LayerStreams.Use<?> use = ticket.use;
    if (use != null) {
      use.awaitOver();
    }
  }

  /** A stream that took a layer and did not release it may still work with it. */
  private void awaitUse(Ticket<S> ticket) {
    S stream = ticket.stream;
    if (stream != null) {
      end(ticket, stream).awaitOver();
    }
  }

  private static void quietly(Runnable step) {
    try {
      step.run();
    } catch (CudaException | IllegalStateException e) {
      // A stream or an accelerator that is closed or broken: freeing the memory waits for the rest.
    }
  }
}
