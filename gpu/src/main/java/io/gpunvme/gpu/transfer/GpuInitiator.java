package io.gpunvme.gpu.transfer;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.BufferRegistrations;
import io.gpunvme.gpu.queue.CudaTransferKernel;
import io.gpunvme.gpu.queue.DeviceQueueOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.TransferKernel;
import io.gpunvme.nvme.driver.NvmeController;
import java.util.ArrayList;
import java.util.List;

/**
 * Drives queue pairs from a kernel, one warp each. The CPU launches the kernel, waits, and handles
 * failures.
 *
 * <p>The kernel keeps every queue full from the plan's common cursor, so a slow queue takes less of
 * the work. Long transfers take turns. Short ones that wait are joined into one, which has a queue
 * pair and a kernel of its own if the controller has one left: then they do not wait for long ones.
 */
public final class GpuInitiator implements Initiator {
  static final String NAME = "GPU";

  private final NvmeController controller;
  private final TransferKernel kernel;
  private final Placement placement;
  private final BufferRegistrations descriptions;
  private final GpuLane longLane;

  /** For short transfers; {@link #longLane} if no queue pair was left. */
  private final GpuLane shortLane;

  private final JoinedRequests joined;
  private boolean closed;

  /**
   * Creates the queue pairs and loads the kernel.
   *
   * @param placement where queues and data lie
   * @param queuePairs 1..{@link NvmeController#maxQueuePairs}; 0: as {@link DeviceQueueOptions}
   *     says
   * @param depth commands in flight per queue pair; 0: as {@link DeviceQueueOptions} says
   * @param retries how often a retryable command is repeated, 0..100
   * @throws InvalidRequestException if a number is out of range
   * @throws io.gpunvme.nvme.DmaMappingException if the placement is not possible here
   * @throws io.gpunvme.nvme.ProtocolException if the controller granted no I/O queues
   */
  public static GpuInitiator open(
      NvmeController controller,
      GpuAccelerator accelerator,
      Placement placement,
      int queuePairs,
      int depth,
      int retries) {
    CudaTransferKernel kernel = CudaTransferKernel.load(accelerator);
    return CloseAll.orClose(
        () ->
            new GpuInitiator(
                controller, accelerator, kernel, placement, queuePairs, depth, retries),
        kernel::close);
  }

  /** With another kernel, which is closed with this. */
  GpuInitiator(
      NvmeController controller,
      Accelerator accelerator,
      TransferKernel kernel,
      Placement placement,
      int queuePairs,
      int depth,
      int retries) {
    if (retries < 0 || retries > 100) {
      throw new InvalidRequestException("retries " + retries + " is outside 0..100");
    }
    this.controller = controller;
    this.kernel = kernel;
    this.placement = placement;
    longLane =
        new GpuLane(
            controller,
            accelerator,
            kernel,
            DeviceQueueOptions.exclusive(placement, queuePairs, depth),
            retries);
    shortLane = shortLane(accelerator, retries);
    joined = new JoinedRequests(shortLane);
    descriptions = new BufferRegistrations(controller, accelerator);
  }

  private GpuLane shortLane(Accelerator accelerator, int retries) {
    // One is left for a flush.
    if (controller.maxQueuePairs() - longLane.queuePairs() < 2) {
      return longLane;
    }
    try {
      DeviceQueueOptions one = DeviceQueueOptions.exclusive(placement, 1, longLane.depth());
      return new GpuLane(controller, accelerator, kernel, one, retries);
    } catch (InvalidRequestException e) {
      // Others have taken them.
      return longLane;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, longLane::close);
      throw e;
    }
  }

  @Override
  public String name() {
    return NAME;
  }

  @Override
  public int queuePairs() {
    return longLane.queuePairs();
  }

  @Override
  public int depth() {
    return longLane.depth();
  }

  @Override
  public long maxTransferBytes() {
    return controller.maxTransferBytes();
  }

  /**
   * {@inheritDoc}
   *
   * @param buffers in host memory for {@link Placement#HOST}, else in GPU memory
   * @throws BrokenInitiatorException if an earlier transfer has left the queues unusable
   */
  @Override
  public TransferReport run(
      TransferPlan plan, List<DeviceBuffer> buffers, TransferListener listener) {
    TransferJob.check(plan, buffers, controller);
    check(plan, buffers);
    TransferJob job = new TransferJob(plan, buffers, controller, listener);
    List<BufferRegistrations.Use> uses = new ArrayList<>();
    GpuLane lane = job.isShort() ? shortLane : longLane;
    try {
      for (int i = 0; i < plan.buffers(); i++) {
        uses.add(descriptions.use(buffers.get(i)));
      }
      GpuRequest request =
          new GpuRequest(
              job, uses.stream().mapToLong(u -> u.registration().deviceAddress()).toArray());
      if (!job.isShort()) {
        longLane.carryOut(List.of(request), false);
      } else if (!joined.carryOut(request)) {
        lane = longLane;
        longLane.carryOut(List.of(request), true);
      }
      return request.report();
    } finally {
      // A kernel that hangs may write to the buffers for ever, so they stay.
      if (!lane.isHung()) {
        CloseAll.each(uses, BufferRegistrations.Use::close);
      }
    }
  }

  private void check(TransferPlan plan, List<DeviceBuffer> buffers) {
    if (placement.hostData() != buffers.getFirst().isHost()) {
      throw new InvalidRequestException(
          "placement %s needs a buffer in %s memory; allocate it with Placement.allocate"
              .formatted(placement, placement.hostData() ? "pinned host" : "GPU"));
    }
    for (int i = 0; i < plan.commands(); i++) {
      if (plan.bytes(i) > maxTransferBytes()) {
        throw new InvalidRequestException(
            "the plan has a command of %d bytes; plan with at most %d (maxTransferBytes)"
                .formatted(plan.bytes(i), maxTransferBytes()));
      }
    }
  }

  /** Deletes the queue pairs at the controller and frees them. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    longLane.close();
    shortLane.close();
    closed = true;
    if (!longLane.isHung() && !shortLane.isHung()) {
      CloseAll.all(descriptions, kernel);
    }
  }
}
