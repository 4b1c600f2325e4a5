package io.gpunvme.storage.layer;

import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A layer in somebody's order, from there to its release. Guarded by its ring.
 *
 * @param <S> streams
 */
final class Ticket<S> {
  final Layer layer;

  /** Its place, once it has one. */
  @Nullable LayerSlot<S> slot;

  /** Of the slot. */
  int turn;

  /** Who must be done with the place before it is read into, or null. */
  @Nullable Ticket<S> before;

  volatile @Nullable CompletableFuture<?> read;
  long began;
  long readNanos;

  /** It is there, or never will be. */
  boolean done;

  @Nullable LayerException failure;

  /** The one that it was taken for, or null. */
  @Nullable S stream;

  /** Whether that one was told to wait. */
  boolean gated;

  /** That one's use of the place, until it is known to be over; null if there is none. */
  LayerStreams.@Nullable Use<S> use;

  Ticket(Layer layer) {
    this.layer = layer;
  }

  LayerSlot<S> place() {
    LayerSlot<S> there = slot;
    if (there == null) {
      throw new IllegalStateException(layer + " has no slot");
    }
    return there;
  }
}
