package io.gpunvme.sim.media;

import io.gpunvme.base.Uninterrupted;
import io.gpunvme.ffi.Errno;
import io.gpunvme.ffi.MemoryBudget;
import io.gpunvme.ffi.Posix;
import io.gpunvme.ffi.PosixException;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * When the pages of a {@link RamMedia} are taken, and how large they are, in pieces of 2 MiB: the
 * size of a huge page, which random reads want.
 *
 * <p>A medium of up to a quarter of what may be had is promised its memory when it is made. Its
 * writes take huge pages. Where zeroing one takes long, because the host of a virtual machine gives
 * it memory only now, a short write takes pages of 4 KiB instead of waiting; then a thread fills
 * the memory ahead of more of them with huge pages, 8 times as much as they wrote, until that is
 * quick again. docs/benchmarks.md has what this brings.
 *
 * <p>A larger medium is promised nothing. Its pieces are taken whole when they are first written,
 * and a write for which the machine has no room fails.
 *
 * <p>Safe for all threads.
 */
final class RamPages implements AutoCloseable {
  /** Bytes of a huge page. */
  static final long PIECE = 2L << 20;

  private static final int PIECE_SHIFT = 21;

  /** A write of fewer bytes is short. */
  private static final long LONG = 64 << 10;

  /** Zeroing a huge page takes longer where the machine is new to it, or has no time. */
  static final long QUICK_NANOS = 1_000_000;

  /** The part of what may be had that a medium is promised. */
  private static final int SHARE = 4;

  private static final int AHEAD = 8;

  /** Bytes of short writes between two looks for work: they allow one piece to be filled. */
  private static final int STEP_SHIFT = 18;

  /** Most bytes that are taken between two looks at the machine; its reserve is as large. */
  private static final long CREDIT = 64L << 20;

  private static final int CREDIT_SHARE = 16;

  private final MemorySegment memory;
  private final MemoryBudget budget;
  private final MemoryBudget.@Nullable Promise promise;

  /**
   * 1: the piece is there, or will be with the long write that follows. Read without a lock: who
   * sees an old value looks at the machine once too often, or takes what is there already.
   */
  private final byte[] taken;

  /** What may be taken without a look at the machine. */
  private final AtomicLong credit = new AtomicLong();

  private final long quickNanos;

  /** Whether the last piece was taken quickly. A guess: threads overwrite each other's. */
  private volatile boolean quick;

  private final AtomicLong shortBytes = new AtomicLong();
  private @Nullable Thread filler;
  private boolean closed;

  /**
   * @param memory starts at a multiple of {@link #PIECE} if it is as long
   * @param quickNanos a piece that takes less is worth the wait of a short write
   */
  RamPages(MemorySegment memory, MemoryBudget budget, long quickNanos) {
    this.memory = memory;
    this.budget = budget;
    this.quickNanos = quickNanos;
    quick = quickNanos > 0;
    long bytes = memory.byteSize();
    taken = new byte[Math.toIntExact(Math.ceilDiv(bytes, PIECE))];
    boolean small = bytes <= budget.available() / SHARE;
    promise = small ? budget.promise(bytes) : null;
    advise(memory, small ? Posix.MADV_NOHUGEPAGE : Posix.MADV_HUGEPAGE);
  }

  /**
   * Sees to the pages of a range that is about to be written.
   *
   * @throws NoSpaceException if the machine has none left
   */
  void prepare(long position, long length) throws NoSpaceException {
    if (length <= 0) {
      return;
    }
    int last = (int) ((position + length - 1) >> PIECE_SHIFT);
    for (int i = (int) (position >> PIECE_SHIFT); i <= last; i++) {
      if (taken[i] == 0) {
        first(i, length);
      }
    }
  }

  private void first(int i, long length) throws NoSpaceException {
    if (promise == null || quick && length < LONG) {
      fill(i);
    } else if (length >= LONG) {
      requireRoom(PIECE);
      advise(piece(i), Posix.MADV_HUGEPAGE);
      setTaken(i);
    } else {
      requireRoom(length);
      long now = shortBytes.addAndGet(length);
      if (now >> STEP_SHIFT != (now - length) >> STEP_SHIFT) {
        wakeFiller();
      }
    }
  }

  /**
   * Takes all that is not there yet.
   *
   * @throws NoSpaceException if the machine has not that much
   */
  void takeAll() throws NoSpaceException {
    try (MemoryBudget.Promise _ = promise == null ? budget.promise(missing()) : null) {
      for (int i = 0; i < taken.length; i++) {
        take(i);
      }
    } catch (PosixException e) {
      throw new NoSpaceException(String.valueOf(e.getMessage()), e);
    }
  }

  private long missing() {
    long bytes = 0;
    for (int i = 0; i < taken.length; i++) {
      bytes += taken[i] == 0 ? piece(i).byteSize() : 0;
    }
    return bytes;
  }

  /** The pages of this range have been given back. */
  void givenBack(long position, long length) {
    long firstWhole = Math.ceilDiv(position, PIECE);
    long behindWhole = (position + length) >> PIECE_SHIFT;
    if (promise != null && firstWhole < behindWhole) {
      long bytes = (behindWhole - firstWhole) * PIECE;
      advise(memory.asSlice(firstWhole * PIECE, bytes), Posix.MADV_NOHUGEPAGE);
    }
    int last = (int) ((position + length - 1) >> PIECE_SHIFT);
    for (int i = (int) (position >> PIECE_SHIFT); i <= last; i++) {
      setMissing(i);
    }
  }

  private MemorySegment piece(int i) {
    long start = i * PIECE;
    return memory.asSlice(start, Math.min(PIECE, memory.byteSize() - start));
  }

  private synchronized void setTaken(int i) {
    if (taken[i] == 0) {
      taken[i] = 1;
      if (promise != null) {
        promise.touched(piece(i).byteSize());
      }
    }
  }

  private synchronized void setMissing(int i) {
    if (taken[i] != 0) {
      taken[i] = 0;
      if (promise != null) {
        promise.givenBack(piece(i).byteSize());
      }
    }
  }

  /** Looks at the machine now and then: it may be fuller than when the promise was given. */
  private void requireRoom(long bytes) throws NoSpaceException {
    if (credit.addAndGet(-bytes) >= 0) {
      return;
    }
    long room = promise == null ? budget.available() : budget.free();
    if (room < bytes) {
      credit.set(0);
      throw new NoSpaceException("the machine has no memory left for this namespace", null);
    }
    credit.set(Math.min(CREDIT, room / CREDIT_SHARE));
  }

  private void fill(int i) throws NoSpaceException {
    requireRoom(piece(i).byteSize());
    take(i);
  }

  /** Takes a piece whole; what is in it already stays. */
  private void take(int i) throws NoSpaceException {
    MemorySegment piece = piece(i);
    long start = System.nanoTime();
    advise(piece, Posix.MADV_HUGEPAGE);
    try {
      Posix.madvise(piece, Posix.MADV_POPULATE_WRITE);
    } catch (PosixException e) {
      if (e.errno() != Errno.EINVAL) {
        throw new NoSpaceException(String.valueOf(e.getMessage()), e);
      }
      // Linux before 5.14: whoever writes first takes the pages.
    }
    quick = System.nanoTime() - start < quickNanos;
    setTaken(i);
  }

  private static void advise(MemorySegment part, int advice) {
    try {
      Posix.madvise(part, advice);
    } catch (PosixException e) {
      // A kernel without huge pages, or too many parts with advice of their own: slower, no more.
    }
  }

  // ---- ahead of short writes

  private synchronized void wakeFiller() {
    if (filler == null && !closed) {
      filler = Thread.ofPlatform().daemon().name("gpunvme-ram").start(this::fillAhead);
    } else {
      notifyAll();
    }
  }

  private void fillAhead() {
    long filled = 0;
    int next = 0;
    try {
      while (awaitWork(filled)) {
        next = nextMissing(next);
        if (next < 0) {
          // Short writes to pieces that were given back will wake this thread.
          next = 0;
          filled = allowed();
        } else {
          fill(next);
          filled += PIECE;
        }
      }
    } catch (NoSpaceException e) {
      // The machine is full: what is still missing is taken when it is written, if it can be.
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private synchronized boolean awaitWork(long filled) throws InterruptedException {
    while (!closed && filled >= allowed()) {
      wait();
    }
    return !closed;
  }

  private long allowed() {
    return AHEAD * shortBytes.get();
  }

  /** The next piece from there on, and round; negative if all are there. */
  private int nextMissing(int from) {
    for (int n = 0; n < taken.length; n++) {
      int i = (from + n) % taken.length;
      if (taken[i] == 0) {
        return i;
      }
    }
    return -1;
  }

  /** Returns when no thread of this is using the memory. */
  @Override
  public void close() {
    Thread running;
    synchronized (this) {
      closed = true;
      running = filler;
      notifyAll();
    }
    if (running != null) {
      Uninterrupted.join(running);
    }
    if (promise != null) {
      promise.close();
    }
  }
}
