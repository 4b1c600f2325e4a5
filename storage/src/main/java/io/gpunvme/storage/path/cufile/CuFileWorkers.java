package io.gpunvme.storage.path.cufile;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/** Threads that help those who transfer; started at the first transfer that needs them. */
final class CuFileWorkers implements AutoCloseable {
  private final int most;
  private @Nullable ExecutorService pool;

  /**
   * @param most helpers at a time; may be 0
   */
  CuFileWorkers(int most) {
    this.most = most;
  }

  /**
   * Runs {@code work} in this thread and in helpers, {@code threads} in all if they are free;
   * returns when it runs in none of them.
   */
  void run(int threads, Runnable work) {
    List<Helper> helpers = new ArrayList<>();
    try {
      for (int i = 1; i < threads; i++) {
        Helper helper = new Helper(work);
        pool().execute(helper);
        helpers.add(helper);
      }
      work.run();
    } finally {
      helpers.forEach(Helper::dismiss);
    }
  }

  private synchronized ExecutorService pool() {
    ExecutorService there = pool;
    if (there == null) {
      there =
          Executors.newFixedThreadPool(
              most, Thread.ofPlatform().daemon().name("gpunvme-cufile-", 0).factory());
      pool = there;
    }
    return there;
  }

  /** No transfer is running. */
  @Override
  public synchronized void close() {
    if (pool != null) {
      pool.shutdown();
    }
  }

  private static final class Helper implements Runnable {
    private final Runnable work;

    /** Whoever sets it decides: the thread that works, or the one that dismisses it before. */
    private final AtomicBoolean decided = new AtomicBoolean();

    private final CountDownLatch over = new CountDownLatch(1);

    Helper(Runnable work) {
      this.work = work;
    }

    @Override
    public void run() {
      if (decided.compareAndSet(false, true)) {
        try {
          work.run();
        } finally {
          over.countDown();
        }
      }
    }

    /** Waits for its end, unless it has not begun: then all is done, and it never does. */
    void dismiss() {
      if (decided.compareAndSet(false, true)) {
        return;
      }
      boolean interrupted = false;
      while (true) {
        try {
          over.await();
          break;
        } catch (InterruptedException e) {
          interrupted = true; // Buffers are in use until it has ended.
        }
      }
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
