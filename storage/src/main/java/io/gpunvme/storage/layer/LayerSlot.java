package io.gpunvme.storage.layer;

import org.jspecify.annotations.Nullable;

/**
 * A place for a layer. Guarded by its ring.
 *
 * @param <S> streams
 */
final class LayerSlot<S> {
  final long offset;
  final LayerStreams.Gate<S> gate;

  /** How many layers were given this place. */
  int turn;

  /** Whose bytes are on their way into it, or null. */
  @Nullable Ticket<S> reading;

  /** The last layer here whose use by a stream may go on, or null. */
  @Nullable Ticket<S> last;

  LayerSlot(long offset, LayerStreams.Gate<S> gate) {
    this.offset = offset;
    this.gate = gate;
  }
}
