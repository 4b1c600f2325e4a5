package io.gpunvme.gpu.transfer;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.BufferRegistrations;
import io.gpunvme.gpu.queue.CudaTransferKernel;
import io.gpunvme.gpu.queue.DeviceQueueOptions;
import io.gpunvme.gpu.queue.DeviceQueues;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.QueueCounters;
import io.gpunvme.gpu.queue.TransferKernel;
import io.gpunvme.nvme.driver.NvmeController;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Drives queue pairs from a kernel, one warp each. The CPU launches the kernel, waits, and handles
 * failures.
 *
 * <p>The kernel keeps every queue full from the plan's common cursor, so a slow queue takes less of
 * the work. One transfer at a time.
 */
public final class GpuInitiator implements Initiator {
  private final NvmeController controller;
  private final TransferKernel kernel;
  private final Placement placement;
  private final DeviceQueues queues;
  private final DeviceBuffer moved;
  private final TransferArrays arrays;
  private final BufferRegistrations descriptions;
  private final int retries;

  /** What the queues had done when the last transfer was over; null if that is not known. */
  private @Nullable QueueCounters seen;

  /** The word that kernels count blocks in, as it was then. */
  private long movedSoFar;

  /** Why no transfer can be run any more, or null. */
  private @Nullable RuntimeException broken;

  /** A kernel runs and does not end. What it may use is never freed: freeing waits for it. */
  private boolean hung;

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
    try {
      return new GpuInitiator(
          controller, accelerator, kernel, placement, queuePairs, depth, retries);
    } catch (RuntimeException e) {
      kernel.close();
      throw e;
    }
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
    descriptions = new BufferRegistrations(controller, accelerator);
    this.kernel = kernel;
    this.placement = placement;
    this.retries = retries;
    arrays = new TransferArrays(accelerator);
    queues =
        new DeviceQueues(
            controller, accelerator, DeviceQueueOptions.exclusive(placement, queuePairs, depth));
    try {
      moved = accelerator.allocate(Long.BYTES);
    } catch (RuntimeException e) {
      queues.close();
      throw e;
    }
  }

  @Override
  public String name() {
    return "GPU";
  }

  @Override
  public int queuePairs() {
    return queues.queues().size();
  }

  @Override
  public int depth() {
    return queues.depth();
  }

  @Override
  public long maxTransferBytes() {
    return controller.maxTransferBytes();
  }

  /**
   * {@inheritDoc}
   *
   * @param buffers in host memory for {@link Placement#HOST}, else in GPU memory
   */
  @Override
  public synchronized TransferReport run(
      TransferPlan plan, List<DeviceBuffer> buffers, TransferListener listener) {
    requireUsable();
    TransferJob.check(plan, buffers, controller);
    check(plan, buffers);
    TransferJob job = new TransferJob(plan, buffers, controller, listener);
    List<BufferRegistrations.Use> uses = new ArrayList<>();
    try {
      for (int i = 0; i < plan.buffers(); i++) {
        uses.add(descriptions.use(buffers.get(i)));
      }
      return run(
          plan, job, uses.stream().mapToLong(u -> u.registration().deviceAddress()).toArray());
    } finally {
      if (!hung) {
        closeAll(uses);
      }
    }
  }

  /** All of them, whichever fails. */
  private static void closeAll(List<BufferRegistrations.Use> uses) {
    RuntimeException failure = null;
    for (BufferRegistrations.Use use : uses) {
      try {
        use.close();
      } catch (RuntimeException e) {
        failure = failure == null ? e : failure;
      }
    }
    if (failure != null) {
      throw failure;
    }
  }

  private TransferReport run(TransferPlan plan, TransferJob job, long[] buffers) {
    QueueCounters before = counters();
    KernelWatch watch = new KernelWatch(controller, queues, job, moved, movedSoFar);
    long start = System.nanoTime();
    try {
      arrays.load(plan, buffers);
      GpuTransfer transfer =
          new GpuTransfer(controller, queues, kernel, job, arrays, watch, retries);
      if (plan.commands() > 0) {
        guarded(transfer);
      }
      long nanos = System.nanoTime() - start;
      job.throwIfFailed();
      if (transfer.bytes() != plan.bytes()) {
        throw new IllegalStateException(
            "a plan of %d bytes ended after %d bytes without an error"
                .formatted(plan.bytes(), transfer.bytes()));
      }
      QueueCounters after = queues.counters();
      QueueCounters own = after.minus(before);
      seen = own.troubles() == 0 ? after : null;
      return report(transfer, job, own, nanos);
    } finally {
      movedSoFar = watch.moved();
      watch.restoreInterrupt();
      hung = watch.hung();
      if (!hung) {
        arrays.unload();
      }
    }
  }

  /** What the queues have done before a transfer; what kernels told of earlier ones is dropped. */
  private QueueCounters counters() {
    QueueCounters known = seen;
    seen = null;
    if (known != null) {
      return known;
    }
    queues.takeErrors();
    return queues.counters();
  }

  /** Describes the buffer. If that needs memory, it is allocated between the kernels of others. */
  @Override
  public void prepare(DeviceBuffer buffer) {
    if (placement.hostData() == buffer.isHost()) {
      descriptions.use(buffer).close();
    }
  }

  /**
   * A kernel that failed or does not end leaves commands at work in the caller's buffer: the
   * controller must forget the queues then.
   */
  private void guarded(GpuTransfer transfer) {
    try {
      transfer.run(moved.deviceAddress());
    } catch (RuntimeException e) {
      broken = e;
      CloseAll.after(e, queues::forget);
      throw e;
    }
  }

  private void requireUsable() {
    if (closed) {
      throw new IllegalStateException("this initiator is closed");
    }
    RuntimeException reason = broken;
    if (reason != null) {
      throw new IllegalStateException(
          "this initiator cannot be used any more; open another: " + reason.getMessage(), reason);
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

  private TransferReport report(
      GpuTransfer transfer, TransferJob job, QueueCounters counters, long nanos) {
    job.add(transfer.latency());
    int warps = queues.queues().size();
    return new TransferReport(
        "direct",
        name(),
        placement,
        warps,
        queues.depth(),
        warps,
        transfer.commands(),
        counters.sqDoorbells(),
        counters.cqDoorbells(),
        transfer.bytes(),
        nanos,
        transfer.retries(),
        transfer.recoveries(),
        job.latencies());
  }

  /** Deletes the queue pairs at the controller and frees them. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    if (hung) {
      closed = true;
      return;
    }
    queues.close();
    closed = true;
    descriptions.close();
    moved.close();
    arrays.close();
    kernel.close();
  }
}
