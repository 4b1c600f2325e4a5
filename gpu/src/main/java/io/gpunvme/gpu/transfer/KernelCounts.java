package io.gpunvme.gpu.transfer;

import io.gpunvme.gpu.queue.DeviceQueue;
import io.gpunvme.gpu.queue.DeviceQueues;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueueTraffic;

/**
 * Tells those who watch what transfer kernels do with the queue pairs of a lane. Warps take their
 * commands from one cursor, so latencies and bytes belong to all pairs together. Bytes of a long
 * transfer are told as they arrive, everything else when the kernel has ended. For one thread.
 */
final class KernelCounts {
  private final QueueTraffic traffic;

  // Of the kernel that has ended last.
  private long submitted;
  private long succeeded;
  private long failed;
  private long nanos;
  private long bytes;
  private long repeated;

  KernelCounts(NvmeController controller, DeviceQueues queues) {
    traffic =
        controller
            .traffic()
            .ofKernels(
                queues.queues().stream().map(DeviceQueue::pair).toList(),
                QueueTraffic.Kind.TRANSFERS);
  }

  /** A kernel gets commands, of which it keeps so many with the controller at most. */
  void given(int commands, long most) {
    traffic.submitted(0, Math.min(commands, most));
  }

  /**
   * @param moved bytes that {@link #moved} does not tell
   */
  void succeeded(long latencyNanos, long moved) {
    submitted++;
    succeeded++;
    nanos += latencyNanos;
    bytes += moved;
  }

  /**
   * @param completed whether the controller completed the command
   */
  void failed(boolean completed) {
    submitted++;
    failed += completed ? 1 : 0;
  }

  void repeated() {
    repeated++;
  }

  /** All commands of a kernel have been told. */
  void settled(Direction direction) {
    traffic.submitted(submitted, 0);
    traffic.completed(succeeded, nanos, 0);
    traffic.ended(failed, 0);
    traffic.retried(repeated);
    moved(direction, bytes);
    submitted = 0;
    succeeded = 0;
    failed = 0;
    nanos = 0;
    bytes = 0;
    repeated = 0;
  }

  /** Bytes have arrived while the kernel runs. */
  void moved(Direction direction, long more) {
    boolean read = direction == Direction.READ;
    traffic.moved(read ? more : 0, read ? 0 : more);
  }

  /** No kernel has commands any more, however the last one ended. */
  void over() {
    traffic.submitted(0, 0);
  }

  /** The queue pairs are gone. */
  void close() {
    traffic.close();
  }
}
