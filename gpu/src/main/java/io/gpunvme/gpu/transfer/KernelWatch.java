package io.gpunvme.gpu.transfer;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout;
import io.gpunvme.gpu.queue.DeviceQueues;
import io.gpunvme.gpu.queue.KernelWait;
import io.gpunvme.gpu.queue.RunningKernel;
import io.gpunvme.nvme.driver.NvmeController;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * What the host does while a transfer kernel runs: passes progress on, and has the kernel stopped
 * when nothing moves any more, the job failed, or the caller was interrupted. For one thread.
 */
final class KernelWatch {
  /** How often progress is copied from the accelerator's memory. */
  private static final long COPY_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

  private static final long SLACK_NANOS = TimeUnit.SECONDS.toNanos(1);

  private final KernelWait wait;
  private final TransferJob job;
  private final DeviceBuffer movedWord;
  private final MemorySegment copy = Arena.ofAuto().allocate(Long.BYTES, Long.BYTES);
  private final long quietNanos;
  private long moved;
  private long progress;
  private long copied;
  private boolean interrupted;

  /**
   * @param movedWord where kernels count the blocks they have moved, 8 bytes
   * @param moved what it is before the kernel begins: setting it back would be a copy to wait for
   */
  KernelWatch(
      NvmeController controller,
      DeviceQueues queues,
      TransferJob job,
      DeviceBuffer movedWord,
      long moved) {
    this.wait = new KernelWait(List.of(queues));
    this.job = job;
    this.movedWord = movedWord;
    this.moved = moved;
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
    progress = System.nanoTime();
    copied = progress;
    wait.await(kernel, this::pointless);
    passOn();
  }

  private boolean pointless() {
    long now = System.nanoTime();
    if (now - copied >= COPY_NANOS) {
      copied = now;
      if (passOn()) {
        progress = now;
      }
    }
    // The flag is kept for the caller: waiting and recovering need it clear.
    if (Thread.interrupted()) {
      interrupted = true;
      job.cancel();
    }
    job.cancelIfAsked();
    return job.failed() || now - progress > quietNanos;
  }

  /** Tells the listener what has arrived since the last call; false if nothing has. */
  private boolean passOn() {
    movedWord.copyToHost(0, copy);
    long seen = DeviceLayout.getLong(copy, 0);
    long blocks = seen - moved;
    moved = seen;
    if (blocks > 0) {
      try {
        job.listener().moved(blocks * job.plan().blockSize());
      } catch (Throwable e) {
        // The kernel must end before anybody hears of it.
        job.fail(e);
      }
    }
    return blocks > 0;
  }

  /** The word of blocks moved, as it was seen last: after {@link #await}, at the kernel's end. */
  long moved() {
    return moved;
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
