package io.gpunvme.storage.path.cufile;

import io.gpunvme.base.WorkScope;
import io.gpunvme.nvme.pci.NumaHome;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;

/** Threads that help those who transfer; started at the first transfer that needs them. */
final class CuFileWorkers implements AutoCloseable {
  private final int most;
  private final NumaHome home;
  private @Nullable ExecutorService pool;

  /**
   * @param most helpers at a time; may be 0
   * @param home where they are
   */
  CuFileWorkers(int most, NumaHome home) {
    this.most = most;
    this.home = home;
  }

  /**
   * Runs {@code work} in this thread and in helpers, {@code threads} in all if they are free;
   * returns when it runs in none of them.
   */
  void run(int threads, Runnable work) {
    if (threads <= 1) {
      work.run();
      return;
    }
    WorkScope scope = new WorkScope(pool());
    for (int i = 1; i < threads; i++) {
      scope.help(work);
    }
    WorkScope.rethrow(scope.finish(work, () -> {}, () -> {}));
  }

  private synchronized ExecutorService pool() {
    ExecutorService there = pool;
    if (there == null) {
      there =
          Executors.newFixedThreadPool(
              most,
              home.threads(Thread.ofPlatform().daemon().name("gpunvme-cufile-", 0).factory()));
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
}
