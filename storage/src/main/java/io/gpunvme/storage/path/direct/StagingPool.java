package io.gpunvme.storage.path.direct;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.BufferCopies;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.pci.NumaHome;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.Semaphore;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Memory that the controller reaches, for what cannot go straight to its buffer. Safe for all
 * threads: a few transfers have some at a time, others wait for it.
 */
final class StagingPool implements AutoCloseable {
  /** So many pieces of memory at most, where it is a GPU's. */
  static final int MOST_ON_GPU = 1;

  private static final int MOST_ON_HOST = 4;

  /** Single reads that threads stage at the same time, and bytes for each: two pieces. */
  private static final int MOST_FOR_PIECES = 16;

  static final long BYTES_FOR_PIECES = 1 << 20;

  /** Bytes of each, of a GPU. */
  static final long BYTES_ON_GPU = 16 << 20;

  /** Bytes of each in host memory, which is cheaper: long rounds lose less between two kernels. */
  static final long BYTES_ON_HOST = 32 << 20;

  private final Accelerator accelerator;
  private final Placement placement;
  private final NumaHome home;
  private final int most;
  private final long bytes;
  private final Semaphore turns;
  private final Deque<Staged> free = new ArrayDeque<>();

  /** Those there are, free or not; guarded by {@link #free}. */
  private int made;

  /** Held by who makes some; never while a kernel runs for the thread. */
  private final Lock making = new ReentrantLock();

  private StagingPool(
      Accelerator accelerator, Placement placement, NumaHome home, int most, long bytes) {
    this.accelerator = accelerator;
    this.home = home;
    this.placement = placement;
    this.most = most;
    this.bytes = bytes;
    turns = new Semaphore(most, true);
  }

  /**
   * For transfers that read or write as much as they can at a time.
   *
   * @param home of memory that is not an accelerator's own
   * @param there bytes that there are to be read; few, of an embedded SSD, need little memory
   */
  static StagingPool forRounds(
      Accelerator accelerator, Placement placement, NumaHome home, long there) {
    long most = placement.hostData() ? BYTES_ON_HOST : BYTES_ON_GPU;
    // Two halves take turns, and each has room for the longest I/O that is staged.
    long needed = 2 * Math.ceilDiv(there, ReadJob.LONGEST_STAGED) * ReadJob.LONGEST_STAGED;
    return new StagingPool(
        accelerator,
        placement,
        home,
        placement.hostData() ? MOST_ON_HOST : MOST_ON_GPU,
        Math.clamp(needed, 2 * ReadJob.LONGEST_STAGED, most));
  }

  /** For many threads that read piece by piece, in host memory. */
  static StagingPool forPieces(Accelerator accelerator, NumaHome home) {
    return new StagingPool(accelerator, Placement.HOST, home, MOST_FOR_PIECES, BYTES_FOR_PIECES);
  }

  /** For one transfer, which gets memory if it asks, and has it until it ends. */
  Loan loan() {
    return new Loan();
  }

  /** One for the caller until {@link #give}; waits for its turn. */
  Staged take() {
    turns.acquireUninterruptibly();
    try {
      Staged there = poll();
      return there == null ? make() : there;
    } catch (Throwable e) {
      turns.release();
      throw e;
    }
  }

  private @Nullable Staged poll() {
    synchronized (free) {
      return free.poll();
    }
  }

  /**
   * On a GPU all that there may be: later its driver may wait for streams, and they for what is
   * staged.
   */
  private Staged make() {
    making.lock();
    try {
      Staged there = poll();
      while (there == null) {
        add(stage());
        addOthers();
        there = poll();
      }
      return there;
    } finally {
      making.unlock();
    }
  }

  /** Fewer will do where there is no memory for more. */
  private void addOthers() {
    try {
      while (accelerator.gpu() && isMissing()) {
        add(stage());
      }
    } catch (RuntimeException e) {
      // Whoever needs another one tries again, and is told.
    }
  }

  /** A GPU's pinned memory has the GPU's home. */
  private Staged stage() {
    try (var _ = (accelerator.gpu() ? NumaHome.NONE : home).memory()) {
      return new Staged(accelerator, placement, bytes);
    }
  }

  private void add(Staged one) {
    synchronized (free) {
      made++;
      free.push(one);
    }
  }

  private boolean isMissing() {
    synchronized (free) {
      return made < most;
    }
  }

  /** After a failure copies may still be under way; whoever comes next must not meet them. */
  void give(Staged one) {
    boolean quiet = false;
    try {
      one.copies().await();
      quiet = true;
    } catch (RuntimeException e) {
      CloseAll.after(e, one::close);
    } catch (Error e) {
      CloseAll.after(e, one::close);
      throw e;
    } finally {
      synchronized (free) {
        if (quiet) {
          free.push(one);
        } else {
          made--;
        }
      }
      turns.release();
    }
  }

  /** No transfer is running. */
  @Override
  public void close() {
    synchronized (free) {
      CloseAll.each(free, Staged::close);
      made -= free.size();
      free.clear();
    }
  }

  /** The staging memory of one transfer. For one thread. */
  final class Loan implements Supplier<Staged>, AutoCloseable {
    private @Nullable Staged staged;

    @Override
    public Staged get() {
      Staged there = staged;
      if (there == null) {
        there = take();
        staged = there;
      }
      return there;
    }

    @Override
    public void close() {
      Staged there = staged;
      staged = null;
      if (there != null) {
        give(there);
      }
    }
  }

  /** One piece of memory, and what copies between it and buffers. */
  static final class Staged implements AutoCloseable {
    private final DeviceBuffer memory;
    private final BufferCopies copies;

    Staged(Accelerator accelerator, Placement placement, long bytes) {
      memory = placement.allocate(accelerator, bytes);
      try {
        copies = accelerator.copies();
      } catch (RuntimeException | Error e) {
        CloseAll.after(e, memory::close);
        throw e;
      }
    }

    DeviceBuffer memory() {
      return memory;
    }

    BufferCopies copies() {
      return copies;
    }

    @Override
    public void close() {
      CloseAll.all(copies, memory);
    }
  }
}
