package io.gpunvme.storage.path.pinned;

import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;

/** The threads of a path, started when needed and ended when idle. Safe for all threads. */
final class CopyWorkers implements AutoCloseable {
  private static final int IDLE_SECONDS = 10;

  private final ThreadPoolExecutor executor;

  CopyWorkers(int most) {
    ThreadFactory threads = Thread.ofPlatform().daemon().name("gpunvme-pinned-", 0).factory();
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
    List<FutureTask<Void>> started =
        tasks.stream().map(task -> new FutureTask<Void>(task, null)).toList();
    started.stream().skip(1).forEach(executor::execute);
    started.forEach(FutureTask::run);
    boolean interrupted = false;
    Throwable failure = null;
    for (FutureTask<Void> task : started) {
      boolean over = false;
      while (!over) {
        try {
          task.get();
          over = true;
        } catch (InterruptedException e) {
          interrupted = true;
        } catch (ExecutionException e) {
          over = true;
          failure = failure == null ? e.getCause() : failure;
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
    switch (failure) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      default -> throw new AssertionError(failure);
    }
  }

  @Override
  public void close() {
    executor.close();
  }
}
