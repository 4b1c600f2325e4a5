package io.gpunvme.core.storage;

import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** The threads of a storage's asynchronous transfers. */
final class TransferThreads {
  private static final long IDLE_SECONDS = 5;

  private TransferThreads() {}

  /** So many at most; those that have nothing to do end. */
  static ThreadPoolExecutor open(int most) {
    ThreadPoolExecutor threads =
        new ThreadPoolExecutor(
            most,
            most,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new LinkedBlockingQueue<>(),
            Thread.ofPlatform().daemon().name("gpunvme-transfer-", 1).factory());
    threads.allowCoreThreadTimeOut(true);
    return threads;
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
