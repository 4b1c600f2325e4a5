package io.gpunvme.storage;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/**
 * Writes in the order of streams that are not stored yet. The storage carries such writes out when
 * their streams come to them, and such reads at once, so whatever concerns the same bytes has to
 * wait here. Safe for all threads.
 */
final class WritesInStreams {
  private record Write(long offset, long length, CompletableFuture<?> stored) {
    boolean concerns(long from, long bytes) {
      return offset < from + bytes && from < offset + length;
    }
  }

  /** Guarded by this; few, since each has a slot. */
  private final List<Write> all = new ArrayList<>();

  /**
   * A write was put into a stream.
   *
   * @param stored completes when it is stored, or will not be
   */
  void add(long offset, long length, CompletableFuture<?> stored) {
    Write write = new Write(offset, length, stored);
    synchronized (this) {
      all.add(write);
    }
    var _ = stored.whenComplete((_, _) -> remove(write));
  }

  private synchronized void remove(Write write) {
    all.remove(write);
  }

  /** Completes when those so far that concern these bytes are over, however they ended. */
  synchronized CompletableFuture<Void> before(long offset, long length) {
    return CompletableFuture.allOf(
        all.stream()
            .filter(write -> write.concerns(offset, length))
            .map(write -> write.stored().handle((_, _) -> true))
            .toArray(CompletableFuture[]::new));
  }
}
