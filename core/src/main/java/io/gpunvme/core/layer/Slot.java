package io.gpunvme.core.layer;

import org.jspecify.annotations.Nullable;

/**
 * A place for a layer. Guarded by its ring.
 *
 * @param <S> streams
 */
final class Slot<S> {
  final long offset;
  final Streams.Gate<S> gate;

  /** How many layers were given this place. */
  int turn;

  /** Whose bytes are on their way into it, or null. */
  @Nullable Ticket<S> reading;

  /** The last layer here whose use by a stream may go on, or null. */
  @Nullable Ticket<S> last;

  Slot(long offset, Streams.Gate<S> gate) {
    this.offset = offset;
    this.gate = gate;
  }
}
