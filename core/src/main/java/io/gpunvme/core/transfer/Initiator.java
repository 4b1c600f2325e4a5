package io.gpunvme.core.transfer;

import io.gpunvme.core.accel.DeviceBuffer;

/**
 * Who writes the submission queue entries and rings the doorbells: the CPU, or kernels on a GPU.
 */
public interface Initiator extends AutoCloseable {
  /** {@code CPU} or {@code GPU}. */
  String name();

  /** Longest transfer of one command that {@link #run} takes in a plan, bytes. */
  long maxTransferBytes();

  /**
   * Carries out a plan and returns when every command is over.
   *
   * @param buffer at least {@link TransferPlan#bufferEnd} bytes
   * @throws io.gpunvme.nvme.NvmeException the first failure that neither retries nor recovery
   *     mended; no command is outstanding then
   */
  TransferReport run(TransferPlan plan, DeviceBuffer buffer, TransferListener listener);

  /**
   * Does beforehand what {@link #run} would do first for this buffer; while another transfer is
   * carried out, too. Unneeded for correctness.
   */
  default void prepare(DeviceBuffer buffer) {}

  @Override
  void close();
}
