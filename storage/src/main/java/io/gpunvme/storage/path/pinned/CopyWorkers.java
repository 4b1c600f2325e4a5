package io.gpunvme.storage.path.pinned;

import io.gpunvme.base.WorkScope;
import io.gpunvme.nvme.pci.NumaHome;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/**
 * The threads of a path, or of several, started when needed and ended when idle. Safe for all
 * threads.
 */
final class CopyWorkers implements AutoCloseable {
  private static final int IDLE_SECONDS = 10;

  private final ThreadPoolExecutor executor;

  CopyWorkers(int most, NumaHome home) {
    this(most, home.threads(Thread.ofPlatform().daemon().name("gpunvme-pinned-", 0).factory()));
  }

  CopyWorkers(int most, ThreadFactory threads) {
    executor =
        new ThreadPoolExecutor(
            most, most, IDLE_SECONDS, TimeUnit.SECONDS, new LinkedBlockingQueue<>(), threads);
    executor.allowCoreThreadTimeOut(true);
  }

  /**
   * Runs the tasks, each on a thread of its own as far as there are any, the first on the caller's;
   * returns when all have ended. Tasks that nobody has begun when the caller's has ended it runs
   * itself, so that transfers never wait for each other's threads.
   */
  void run(List<Runnable> tasks) {
    if (tasks.size() == 1) {
      tasks.getFirst().run();
    } else if (!tasks.isEmpty()) {
      WorkScope.rethrow(WorkScope.all(executor, tasks, () -> {}));
    }
  }

  @Override
  public void close() {
    executor.close();
  }
}
