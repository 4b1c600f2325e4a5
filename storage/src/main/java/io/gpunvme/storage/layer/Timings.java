package io.gpunvme.storage.layer;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;

/** Adds up what layers took. Guarded by its ring. */
final class Timings {
  private static final int RECENT = 1024;

  private final Deque<LayerTiming> recent = new ArrayDeque<>();
  private long layers;
  private long bytes;
  private long readNanos;
  private long waitNanos;

  void add(Ticket<?> ticket, long waited) {
    if (ticket.failure != null) {
      return;
    }
    Layer layer = ticket.layer;
    layers++;
    bytes += layer.bytes();
    readNanos += ticket.readNanos;
    waitNanos += waited;
    if (recent.size() == RECENT) {
      recent.removeFirst();
    }
    recent.addLast(new LayerTiming(layer.name(), layer.bytes(), ticket.readNanos, waited));
  }

  LayerStats snapshot() {
    return new LayerStats(layers, bytes, readNanos, waitNanos, List.copyOf(recent));
  }
}
