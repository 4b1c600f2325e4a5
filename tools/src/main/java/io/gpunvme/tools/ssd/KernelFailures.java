package io.gpunvme.tools.ssd;

import io.gpunvme.gpu.queue.DeviceError;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.spec.IoOpcode;
import java.time.Duration;
import java.util.Optional;

/** Reads of kernels that failed, as the exceptions that the same reads of the CPU have. */
public final class KernelFailures {
  /** Of a queue or a command, as in error log entries. */
  private static final int NOT_KNOWN = 0xFFFF;

  private KernelFailures() {}

  /**
   * The exception for a read.
   *
   * @param status as the kernel had it, a failure
   * @param what was read by whom, for messages
   * @param told what the queue's log has of it
   * @param slba its first block; -1: not known
   * @param troubled whether the SSD is in trouble
   * @param limit how long the kernel may run
   */
  public static RuntimeException read(
      int status,
      String what,
      Optional<DeviceError> told,
      int nsid,
      long slba,
      boolean troubled,
      Duration limit) {
    if (DeviceStatus.fromController(status)) {
      int qid = told.map(DeviceError::qid).orElse(NOT_KNOWN);
      int cid = told.map(DeviceError::cid).orElse(NOT_KNOWN);
      return new NvmeStatusException(status, IoOpcode.READ, qid, cid, nsid, slba);
    }
    String line = what + ": " + DeviceStatus.describe(status);
    return switch (status) {
      case DeviceStatus.TIMEOUT, DeviceStatus.BUSY -> new NvmeTimeoutException(line);
      case DeviceStatus.STOPPED ->
          troubled
              ? new ControllerFatalException(line + ", for the SSD is in trouble")
              : new NvmeTimeoutException(
                  line + ", after %d s or because it was interrupted".formatted(limit.toSeconds()));
      default -> new IllegalStateException(line);
    };
  }
}
