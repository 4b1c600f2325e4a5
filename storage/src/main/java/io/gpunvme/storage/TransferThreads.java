package io.gpunvme.storage;

import java.util.concurrent.LinkedTransferQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The threads of a storage's asynchronous transfers. One that waits is taken before a new one is
 * made, which costs a GPU's driver about a millisecond at its first call.
 */
final class TransferThreads {
  private static final long IDLE_SECONDS = 60;

  private TransferThreads() {}

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

  /** So many at most; those that have nothing to do end. */
  static ThreadPoolExecutor open(int most) {
    HandOver queue = new HandOver();
    return new ThreadPoolExecutor(
        0,
        most,
        IDLE_SECONDS,
        TimeUnit.SECONDS,
        queue,
        Thread.ofPlatform().daemon().name("gpunvme-transfer-", 1).factory(),
        (work, threads) -> keep(work, queue, threads));
  }

  /** All threads are at work. */
  private static void keep(Runnable work, HandOver queue, ThreadPoolExecutor threads) {
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

  /** Takes no more work and returns when all that was taken is done. */
  static void end(ThreadPoolExecutor threads) {
    threads.shutdown();
    boolean interrupted = false;
    boolean ended = false;
    while (!ended) {
      try {
        ended = threads.awaitTermination(1, TimeUnit.HOURS);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
