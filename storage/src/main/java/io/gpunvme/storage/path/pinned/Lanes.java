package io.gpunvme.storage.path.pinned;

import io.gpunvme.base.CloseAll;
import io.gpunvme.ffi.IoUring;
import io.gpunvme.ffi.IoUringUnavailableException;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.function.UnaryOperator;

/** Makes the lanes' I/O, and keeps rings that are not in use. Safe for all threads. */
final class Lanes implements AutoCloseable {
  /** Threads that go past the page cache, at most. */
  static final int MOST_DIRECT_THREADS = 64;

  private final int depth;
  private final boolean directByRing;
  private final boolean cachedByRing;
  private final UnaryOperator<LaneIo> wrapper;
  private final Deque<LaneIo> idle = new ArrayDeque<>();
  private boolean closed;

  /**
   * @param wrapper put around everything; tests make failures with it
   * @throws IoUringUnavailableException if a ring is asked for and there is none
   */
  Lanes(PinnedOptions options, UnaryOperator<LaneIo> wrapper) {
    depth = options.depth();
    this.wrapper = wrapper;
    cachedByRing = options.engine() == Engine.URING;
    directByRing = options.engine() != Engine.THREADS && hasRing(cachedByRing);
  }

  private static boolean hasRing(boolean required) {
    try {
      IoUring.open(1).close();
      return true;
    } catch (IoUringUnavailableException e) {
      if (required) {
        throw e;
      }
      return false;
    }
  }

  private boolean byRing(boolean direct) {
    return direct ? directByRing : cachedByRing;
  }

  /** Whether I/O through the page cache is a system call of the thread that wants it. */
  boolean areCalls() {
    return !cachedByRing;
  }

  /** Lanes for I/O past or through the page cache. */
  int most(boolean direct, int threads) {
    if (!direct) {
      return threads;
    }
    return directByRing ? 1 : Math.min(depth, MOST_DIRECT_THREADS);
  }

  /** I/O for one lane, to be given back. */
  LaneIo take(boolean direct) {
    if (!byRing(direct)) {
      return wrapper.apply(new SyncIo());
    }
    synchronized (idle) {
      LaneIo kept = idle.pollLast();
      if (kept != null) {
        return kept;
      }
    }
    return wrapper.apply(new UringIo(depth));
  }

  /** Gives it back; nothing is in flight. */
  void give(LaneIo io, boolean direct) {
    if (byRing(direct)) {
      synchronized (idle) {
        if (!closed) {
          idle.addLast(io);
          return;
        }
      }
    }
    io.close();
  }

  /** How I/O past or through the page cache is done. */
  String describe(boolean direct, int lanes) {
    String count = lanes == 1 ? "1 thread" : lanes + " threads";
    return byRing(direct) ? "io_uring, depth " + depth + (lanes > 1 ? ", " + count : "") : count;
  }

  @Override
  public void close() {
    synchronized (idle) {
      closed = true;
      CloseAll.each(idle, LaneIo::close);
      idle.clear();
    }
  }
}
