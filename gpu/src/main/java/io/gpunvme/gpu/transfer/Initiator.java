package io.gpunvme.gpu.transfer;

import io.gpunvme.gpu.accel.DeviceBuffer;
import java.util.List;

/**
 * Who writes the submission queue entries and rings the doorbells: the CPU, or kernels on a GPU.
 */
public interface Initiator extends AutoCloseable {
  /** {@code CPU} or {@code GPU}. */
  String name();

  /** Longest transfer of one command that {@link #run} accepts in a plan, bytes. */
  long maxTransferBytes();

  /**
   * Carries out a plan and returns when every command is over.
   *
   * @param buffers at least {@link TransferPlan#buffers}, each of at least {@link
   *     TransferPlan#bufferEnd} bytes; all in host memory, or none
   * @throws io.gpunvme.nvme.NvmeException the first failure that neither retries nor recovery
   *     repaired; no command is outstanding then
   */
  TransferReport run(TransferPlan plan, List<DeviceBuffer> buffers, TransferListener listener);

  /** The same for a plan with one buffer. */
  default TransferReport run(TransferPlan plan, DeviceBuffer buffer, TransferListener listener) {
    return run(plan, List.of(buffer), listener);
  }

  /**
   * Prepares this buffer, as {@link #run} would do first. It may be called during another transfer,
   * and may wait for that one. Correctness does not need it.
   */
  default void prepare(DeviceBuffer buffer) {}

  @Override
  void close();
}
