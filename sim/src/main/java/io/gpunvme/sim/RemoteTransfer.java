package io.gpunvme.sim;

import org.jspecify.annotations.Nullable;

/**
 * How far the data of one Read or Write has come that has remote pieces. Belongs to its command for
 * ever; guarded by the worker's lock.
 */
final class RemoteTransfer {
  private @Nullable SimNamespace namespace;
  private long start;

  // The next byte to move: in which piece, how far in it, and where on the medium.
  private int piece;
  private long skip;
  private long position;

  private int pieces;
  private int underWay;
  private boolean waiting;
  private boolean cut;
  private int status;

  /**
   * A command's data begins to move.
   *
   * @param position where on the namespace's medium
   * @param count pieces of the command's scatter list
   */
  void begin(SimNamespace ns, long position, int count) {
    namespace = ns;
    start = position;
    this.position = position;
    pieces = count;
    piece = 0;
    skip = 0;
    underWay = 0;
    waiting = false;
    cut = false;
    status = 0;
  }

  /** The namespace the data is moved from or to. */
  SimNamespace namespace() {
    SimNamespace ns = namespace;
    if (ns == null) {
      throw new IllegalStateException("no transfer has begun");
    }
    return ns;
  }

  /** Where the data starts on the medium, bytes. */
  long start() {
    return start;
  }

  /** Whether copies have yet to be started. */
  boolean hasMore() {
    return piece < pieces && status == 0 && !cut;
  }

  /** The piece the next copy is in. */
  int piece() {
    return piece;
  }

  /** Bytes of {@link #piece} that are on their way. */
  long skip() {
    return skip;
  }

  /** Where on the medium the next copy is. */
  long position() {
    return position;
  }

  /** Moves past {@code bytes} of the current piece, which has {@code length}. */
  void advance(long bytes, long length) {
    position += bytes;
    skip += bytes;
    if (skip == length) {
      piece++;
      skip = 0;
    }
  }

  /** A copy was started. */
  void started() {
    underWay++;
  }

  /** A copy is over. */
  void ended() {
    underWay--;
  }

  /** Whether copies are under way. */
  boolean isUnderWay() {
    return underWay > 0;
  }

  /** Whether it waits for room in a bounce ring. */
  boolean isWaiting() {
    return waiting;
  }

  void waiting(boolean now) {
    waiting = now;
  }

  /** The rest will not be moved; the first reason is the command's status. */
  void fail(int reason) {
    if (status == 0) {
      status = reason;
    }
  }

  /** The rest will not be moved, and not for a reason of ours. */
  void cut() {
    cut |= hasMore();
  }

  /** Whether {@link #cut} left something out. */
  boolean isCut() {
    return cut;
  }

  /** What went wrong; 0 for nothing. */
  int status() {
    return status;
  }

  /** Whether nothing remains to be done. */
  boolean isOver() {
    return underWay == 0 && !waiting && !hasMore();
  }
}
