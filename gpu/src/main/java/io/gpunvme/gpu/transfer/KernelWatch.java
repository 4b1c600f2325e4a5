package io.gpunvme.gpu.transfer;

import io.gpunvme.gpu.queue.DeviceQueues;
import io.gpunvme.gpu.queue.KernelWait;
import io.gpunvme.gpu.queue.RunningKernel;
import io.gpunvme.nvme.driver.NvmeController;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;

/**
 * What the host does while a transfer kernel runs: looks at its progress, and has the kernel
 * stopped when nothing moves any more, a job failed, or the caller was interrupted. For one thread.
 */
final class KernelWatch {
  /** How often progress is looked at, which may be a copy from the accelerator's memory. */
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private static final long SLACK_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final KernelWait wait;
  private final List<TransferJob> jobs;
  private final BooleanSupplier advanced;
  private final long quietNanos;

  /** The jobs that the kernel works for. */
  private List<TransferJob> served = List.of();

  private long progress;
  private long looked;
  private boolean interrupted;

  /**
   * @param jobs that kernels work for; the first is that of the thread
   * @param advanced whether something has moved since it was last asked
   */
  KernelWatch(
      NvmeController controller,
      DeviceQueues queues,
      List<TransferJob> jobs,
      BooleanSupplier advanced) {
    this.wait = new KernelWait(List.of(queues));
    this.jobs = jobs;
    this.advanced = advanced;
    // By then every command that was in flight is over or quarantined: kernels look for expired
    // commands eight times per timeout.
    long timeout = controller.options().ioTimeout().toNanos();
    quietNanos = timeout + timeout / 4 + SLACK_NANOS;
  }

  /**
   * Returns when the kernel is over, by itself or because it was told to stop.
   *
   * @throws io.gpunvme.nvme.NvmeTimeoutException if it does not stop
   */
  void await(RunningKernel kernel) {
    served = jobs.stream().filter(job -> !job.failed()).toList();
    progress = System.nanoTime();
    looked = progress;
    wait.await(kernel, this::pointless);
    look();
  }

  private void look() {
    looked = System.nanoTime();
    if (advanced.getAsBoolean()) {
      progress = looked;
    }
  }

  private boolean pointless() {
    long now = System.nanoTime();
    if (now - looked >= LOOK_NANOS) {
      look();
    }
    // The flag is kept for the caller: waiting and recovering need it clear.
    if (Thread.interrupted()) {
      interrupted = true;
      jobs.getFirst().cancel();
    }
    served.forEach(TransferJob::cancelIfAsked);
    return served.stream().anyMatch(TransferJob::failed) || now - progress > quietNanos;
  }

  /** Whether a kernel did not stop. */
  boolean hung() {
    return wait.hung();
  }

  /** Gives the caller's thread its interrupt flag back. */
  void restoreInterrupt() {
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
