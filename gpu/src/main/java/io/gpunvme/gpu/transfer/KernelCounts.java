package io.gpunvme.gpu.transfer;

import io.gpunvme.gpu.queue.DeviceQueue;
import io.gpunvme.gpu.queue.DeviceQueues;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueueTraffic;

/**
 * Tells those who watch what transfer kernels do with the queue pairs of a lane. Warps take their
 * commands from one cursor, so latencies and bytes belong to all pairs together. Bytes of a long
 * transfer that only reads are told as they arrive, everything else when the kernel has ended. For
 * one thread.
 */
final class KernelCounts {
  private final QueueTraffic traffic;

  // Of the kernel that has ended last.
  private long submitted;
  private long succeeded;
  private long failed;
  private long nanos;
  private long readBytes;
  private long writtenBytes;
  private long repeated;

  KernelCounts(NvmeController controller, DeviceQueues queues) {
    traffic =
        controller
            .traffic()
            .ofKernels(
                queues.queues().stream().map(DeviceQueue::pair).toList(),
                QueueTraffic.Kind.TRANSFERS);
  }

  /** A command has read so many bytes, or has written so many. */
  void succeeded(long latencyNanos, long read, long written) {
    submitted++;
    succeeded++;
    nanos += latencyNanos;
    readBytes += read;
    writtenBytes += written;
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
  void settled() {
    traffic.submitted(submitted, 0);
    traffic.completed(succeeded, nanos, 0);
    traffic.ended(failed, 0);
    traffic.retried(repeated);
    traffic.moved(readBytes, writtenBytes);
    submitted = 0;
    succeeded = 0;
    failed = 0;
    nanos = 0;
    readBytes = 0;
    writtenBytes = 0;
    repeated = 0;
  }

  /** Bytes that were read have arrived while the kernel runs. */
  void arrived(long bytes) {
    traffic.moved(bytes, 0);
  }

  /** The queue pairs are gone. */
  void close() {
    traffic.close();
  }
}
