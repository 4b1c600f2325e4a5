package io.gpunvme.storage.layer;

import io.gpunvme.base.ScopedLock;
import io.gpunvme.storage.layer.LayerException.Reason;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.locks.Condition;
import org.jspecify.annotations.Nullable;

/**
 * Slots and who has which. Everything is guarded by {@link #lock}, and nearly every call needs it.
 * Nothing that may wait is called with the lock held: no driver but to ask or to store a word, no
 * storage.
 *
 * @param <S> streams
 */
final class RingState<S> {
  final ScopedLock lock = new ScopedLock();

  /** Signalled after every change that somebody may wait for. */
  final Condition changed = lock.newCondition();

  /** Of the storage, for messages. */
  final String name;

  final List<LayerSlot<S>> slots = new ArrayList<>();

  /** Not taken yet, in the caller's order. */
  final Deque<Ticket<S>> order = new ArrayDeque<>();

  /** Of them, those without a slot. */
  final Deque<Ticket<S>> placeless = new ArrayDeque<>();

  /** With a slot, to be read. */
  final Deque<Ticket<S>> waiting = new ArrayDeque<>();

  /** Slots that nobody holds; their last use may not be over. */
  final Deque<LayerSlot<S>> free = new ArrayDeque<>();

  /** Taken and not released. */
  final Set<Ticket<S>> held = new LinkedHashSet<>();

  /** Taken by streams that were told to wait, and not there. */
  final Set<Ticket<S>> gated = new LinkedHashSet<>();

  /** Released to streams whose work with them may go on. */
  final Set<Ticket<S>> used = new LinkedHashSet<>();

  final Timings timings = new Timings();

  /** What befell a layer that a stream waited for, until somebody is told. */
  @Nullable LayerException unseen;

  /** Reads that are under way. */
  int reads;

  /** Calls of the driver that are under way. */
  int calls;

  /** Reads to other memory, beside which no stream is told to wait. */
  int loads;

  boolean closing;
  boolean closed;

  RingState(String name) {
    this.name = name;
  }

  void requireOpen() {
    if (closing) {
      throw new IllegalStateException("the layer loader of " + name + " is closed");
    }
  }

  /** The slot can go to another layer. */
  void giveBack(Ticket<S> ticket) {
    held.remove(ticket);
    LayerSlot<S> slot = ticket.place();
    slot.last = ticket.use == null ? ticket.before : ticket;
    free.add(slot);
    place();
  }

  /** Gives free slots to the first layers without one. */
  void place() {
    while (!placeless.isEmpty() && !free.isEmpty()) {
      Ticket<S> ticket = placeless.removeFirst();
      LayerSlot<S> slot = free.removeFirst();
      slot.turn++;
      ticket.slot = slot;
      ticket.turn = slot.turn;
      ticket.before = slot.last;
      waiting.add(ticket);
    }
    changed.signalAll();
  }

  /** Whether a stream's use of a layer is over that was released. */
  boolean isOver(Ticket<S> ticket) {
    LayerStreams.Use<S> use = ticket.use;
    if (use == null) {
      return true;
    }
    if (!use.isOver()) {
      return false;
    }
    if (ticket.gated) {
      timings.add(ticket, use.waitedNanos());
    }
    use.recycle();
    ticket.use = null;
    used.remove(ticket);
    return true;
  }

  void fail(Ticket<S> ticket, Reason reason, String what, @Nullable Throwable cause) {
    if (!ticket.done) {
      LayerException failure = new LayerException(ticket.layer, reason, what, cause);
      ticket.failure = failure;
      waiting.remove(ticket);
      if (ticket.gated && unseen == null) {
        unseen = failure;
      }
      finish(ticket);
    }
  }

  /**
   * Nothing is read any more, and nobody waits; takes the lock.
   *
   * @return layers whose reads may be under way
   */
  List<Ticket<S>> end(Reason reason, String what, @Nullable Throwable cause) {
    try (var _ = lock.hold()) {
      closing = true;
      List<Ticket<S>> ended = new ArrayList<>(held);
      ended.addAll(order);
      order.clear();
      placeless.clear();
      ended.forEach(ticket -> fail(ticket, reason, what, cause));
      slots.forEach(slot -> slot.gate.open(slot.turn));
      changed.signalAll();
      return ended;
    }
  }

  void finish(Ticket<S> ticket) {
    ticket.done = true;
    gated.remove(ticket);
    if (ticket.gated) {
      // Whatever became of the read: a stream that waits for ever would be worse. No other turn is
      // opened here, for a stream may still wait for the slot's layer before.
      ticket.place().gate.open(ticket.turn);
    }
    changed.signalAll();
  }
}
