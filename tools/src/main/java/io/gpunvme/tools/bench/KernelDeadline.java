package io.gpunvme.tools.bench;

import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/**
 * How long a benchmark's kernel may take. {@link io.gpunvme.gpu.queue.KernelWait} asks the
 * controllers how they are meanwhile; the queues measured here may have none behind them.
 */
final class KernelDeadline {
  private static final long NAP_NANOS = TimeUnit.MICROSECONDS.toNanos(50);

  /** Many times what any benchmark takes. */
  private static final long LIMIT_NANOS = TimeUnit.SECONDS.toNanos(60);

  private static final long GRACE_NANOS = TimeUnit.SECONDS.toNanos(10);

  private KernelDeadline() {}

  /**
   * Returns when the kernel is over.
   *
   * @param stop makes the kernel end its waits; called if it takes too long
   * @throws BenchException if it took too long
   */
  static void await(LaunchedKernel run, String kernel, Runnable stop) {
    if (!over(run, LIMIT_NANOS)) {
      stop.run();
      boolean stopped = over(run, GRACE_NANOS);
      throw new BenchException(
          "%s did not end within %d s%s"
              .formatted(
                  kernel,
                  TimeUnit.NANOSECONDS.toSeconds(LIMIT_NANOS),
                  stopped
                      ? "; it ended when told to stop"
                      : ", and not when it was told to stop either"));
    }
  }

  private static boolean over(LaunchedKernel run, long nanos) {
    long begin = System.nanoTime();
    while (!run.isOver()) {
      if (System.nanoTime() - begin > nanos) {
        return false;
      }
      LockSupport.parkNanos(NAP_NANOS);
    }
    return true;
  }
}
