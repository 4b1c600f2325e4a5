package io.gpunvme.storage;

import io.gpunvme.base.Uninterrupted;
import io.gpunvme.nvme.pci.NumaHome;
import java.util.concurrent.LinkedTransferQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * The threads of a storage's asynchronous transfers. One that waits is taken before a new one is
 * made, which costs a GPU's driver about a millisecond at its first call. Safe for all threads.
 */
final class TransferThreads {
  private static final long IDLE_SECONDS = 60;

  private final HandOver queue = new HandOver();
  private final ThreadPoolExecutor threads;

  /** Work that was taken and is not done; guarded by this. */
  private int undone;

  /** Gives work to threads that wait only; the rest makes a thread, or waits in here. */
  private static final class HandOver extends LinkedTransferQueue<Runnable> {
    private static final long serialVersionUID = 1;

    @Override
    public boolean offer(Runnable work) {
      return tryTransfer(work);
    }

    void keep(Runnable work) {
      super.offer(work);
    }
  }

  /**
   * So many at most; those that have nothing to do end. They are {@link NumaHome#movable}: whoever
   * transfers places them meanwhile. When they tell its end they run code of others, and are
   * anywhere.
   */
  TransferThreads(int most) {
    this(most, Thread.ofPlatform().daemon().name("gpunvme-transfer-", 1).factory());
  }

  TransferThreads(int most, ThreadFactory factory) {
    threads =
        new ThreadPoolExecutor(
            0,
            most,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            queue,
            NumaHome.movable(factory),
            (work, _) -> keep(work));
  }

  /** All threads are at work. */
  private void keep(Runnable work) {
    if (!threads.isShutdown()) {
      queue.keep(work);
      // Threads end when there is no work left: the last one may have looked before this was there.
      if (!threads.isShutdown()) {
        if (threads.getPoolSize() == 0) {
          threads.execute(() -> {});
        }
        return;
      }
      if (!queue.remove(work)) {
        return;
      }
    }
    throw new RejectedExecutionException("this takes no more work: it is closed");
  }

  /**
   * Has a thread do some work.
   *
   * @param work must not throw; what it returns is run when the work does not count any more, so
   *     that it may {@link #end} these threads
   * @throws RejectedExecutionException after {@link #end}, or if no thread can be had: nothing is
   *     done
   */
  void execute(Supplier<Runnable> work) {
    synchronized (this) {
      undone++;
    }
    boolean taken = false;
    try {
      threads.execute(() -> run(work));
      taken = true;
    } catch (OutOfMemoryError e) {
      throw new RejectedExecutionException("the system has no thread left: " + e.getMessage(), e);
    } finally {
      if (!taken) {
        done();
      }
    }
  }

  private void run(Supplier<Runnable> work) {
    Runnable told;
    try {
      told = work.get();
    } finally {
      done();
    }
    told.run();
  }

  private synchronized void done() {
    undone--;
    notifyAll();
  }

  /** Takes no more work and returns when all that was taken is done. */
  void end() {
    threads.shutdown();
    synchronized (this) {
      Uninterrupted.await(this, () -> undone == 0);
    }
  }

  int poolSize() {
    return threads.getPoolSize();
  }
}
