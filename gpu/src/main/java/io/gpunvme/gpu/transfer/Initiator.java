package io.gpunvme.gpu.transfer;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.nvme.driver.Namespace;
import java.util.List;

/**
 * Who writes the submission queue entries and rings the doorbells: the CPU, or kernels on a GPU.
 *
 * <p>Safe for all threads. Long transfers of a GPU take turns, those of the CPU share its queue
 * pairs. Short ones do not wait for long ones while the controller has queue pairs for both; those
 * of a GPU that wait are carried out together.
 */
public interface Initiator extends AutoCloseable {
  /** {@code CPU} or {@code GPU}. */
  String name();

  /** Queue pairs of a long transfer. */
  int queuePairs();

  /** Commands in flight per queue pair. */
  int depth();

  /** Who carries out a request of so many bytes: nothing else decides that. */
  default Initiator of(long bytes) {
    return this;
  }

  /**
   * The most bytes that {@link #move} has the calling thread move by itself, side by side with
   * other threads. Of a long read such pieces can be copied on, one while the next is moved. 0:
   * each call is for a kernel, and better long.
   */
  default long pieceBytes() {
    return 0;
  }

  /** Longest transfer of one command that {@link #run} accepts in a plan, bytes. */
  long maxTransferBytes();

  /**
   * Carries out a plan and returns when every command is over.
   *
   * @param buffers at least {@link TransferPlan#buffers}, each of at least {@link
   *     TransferPlan#bufferEnd} bytes; all in host memory, or none
   * @throws io.gpunvme.nvme.NvmeException the first failure that neither retries nor recovery
   *     repaired; no command is outstanding then
   * @throws IllegalStateException after {@link #close}
   */
  TransferReport run(TransferPlan plan, List<DeviceBuffer> buffers, TransferListener listener);

  /** The same for a plan with one buffer. */
  default TransferReport run(TransferPlan plan, DeviceBuffer buffer, TransferListener listener) {
    return run(plan, List.of(buffer), listener);
  }

  /**
   * Moves one run of blocks, for those who need no report.
   *
   * @param slba first logical block
   * @param blocks how many, at least 1
   * @param buffer of the bytes from {@code bufferOffset} on, a multiple of 4
   * @return commands that were repeated
   * @throws io.gpunvme.base.InvalidRequestException if the run is not inside the namespace or the
   *     buffer
   * @throws io.gpunvme.nvme.NvmeException as {@link #run(TransferPlan, List, TransferListener)}
   */
  default long move(
      Direction direction,
      Namespace namespace,
      long slba,
      long blocks,
      DeviceBuffer buffer,
      long bufferOffset,
      TransferListener listener) {
    TransferPlan plan =
        TransferPlan.of(
            direction,
            namespace,
            maxTransferBytes(),
            List.of(new Extent(slba, blocks, bufferOffset)));
    return run(plan, buffer, listener).retries();
  }

  @Override
  void close();
}
