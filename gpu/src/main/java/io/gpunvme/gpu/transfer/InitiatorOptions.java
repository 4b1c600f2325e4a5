package io.gpunvme.gpu.transfer;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.Placements;
import io.gpunvme.nvme.driver.NvmeController;
import org.jspecify.annotations.Nullable;

/**
 * Who carries out a transfer, and with how many queues. Where a number is 0, {@link #open} chooses
 * it, within the controller's limits.
 *
 * @param initiator who issues the commands
 * @param placement the place of queues and data; null: {@link #placement(NvmeController,
 *     Accelerator)} chooses it
 * @param queuePairs I/O queue pairs; 0: {@link #QUEUE_PAIRS} or fewer
 * @param depth commands in flight per queue pair; 0: {@link #DEPTH} or fewer for the CPU, {@link
 *     io.gpunvme.gpu.queue.DeviceQueueOptions#DEPTH} or fewer for a GPU
 * @param threads threads that drive the queue pairs; 0: half the processors or fewer. Only for the
 *     CPU: a GPU has a warp for each queue pair
 * @param retries how often a retryable command is repeated, 0..100
 * @param foreignCuda whether code that knows nothing of gpunvme uses CUDA in this process. Its
 *     calls may wait for kernels, and keep others out of the driver meanwhile. Then no kernel waits
 *     for an embedded controller's copies by CUDA, unless {@code placement} says so: {@link
 *     #avoidsCudaCopies}
 */
public record InitiatorOptions(
    InitiatorKind initiator,
    @Nullable Placement placement,
    int queuePairs,
    int depth,
    int threads,
    int retries,
    boolean foreignCuda) {
  /** Queue pairs by default. */
  public static final int QUEUE_PAIRS = 4;

  /** Commands in flight per queue pair by default. */
  public static final int DEPTH = 16;

  private static final int RETRIES = 8;
  private static final int MOST_THREADS = 4;

  /** {@link #open} chooses everything. */
  public static InitiatorOptions defaults() {
    return new InitiatorOptions(InitiatorKind.AUTO, null, 0, 0, 0, RETRIES, false);
  }

  /** The same with other numbers. */
  public InitiatorOptions with(int pairs, int perQueue, int drivers) {
    return new InitiatorOptions(
        initiator, placement, pairs, perQueue, drivers, retries, foreignCuda);
  }

  /** The same with another initiator or placement. */
  public InitiatorOptions with(InitiatorKind who, @Nullable Placement where) {
    return new InitiatorOptions(who, where, queuePairs, depth, threads, retries, foreignCuda);
  }

  /** The same with or without code beside that uses CUDA and knows nothing of gpunvme. */
  public InitiatorOptions withForeignCuda(boolean there) {
    return new InitiatorOptions(initiator, placement, queuePairs, depth, threads, retries, there);
  }

  /** The threads for one side of a transfer on this machine; the other side needs some too. */
  public static int suitableThreads() {
    return Math.clamp(Runtime.getRuntime().availableProcessors() / 2, 1, MOST_THREADS);
  }

  /**
   * The same for each SSD of a set whose SSDs all work at once: one thread drives each where the
   * usual number would be more threads than the machine has processors.
   *
   * @param ssds how many, at least 1
   */
  public InitiatorOptions forEachOf(int ssds, Accelerator accelerator) {
    int processors = Runtime.getRuntime().availableProcessors();
    return initiator(accelerator) == InitiatorKind.CPU
            && threads == 0
            && areTooMany(ssds, suitableThreads(), processors)
        ? with(queuePairs, depth, 1)
        : this;
  }

  /** Whether one side of a set's transfers would take all processors from the other. */
  static boolean areTooMany(int ssds, int threads, int processors) {
    return (long) ssds * threads > processors;
  }

  /**
   * Opens the accelerator for these options: a GPU if it is named or the placement needs one, the
   * CPU stand-in if the CPU is named and the placement needs no GPU, else the best one.
   *
   * @throws io.gpunvme.cuda.CudaNotFoundException if a GPU is needed and there is no driver
   * @throws io.gpunvme.cuda.CudaException if a GPU is needed and there is none that works
   */
  public Accelerators.Choice accelerator() {
    Placement where = placement;
    boolean gpuMemory = where != null && !where.hostData();
    if (initiator == InitiatorKind.GPU || gpuMemory) {
      return Accelerators.open("gpu");
    }
    return Accelerators.open(initiator == InitiatorKind.CPU ? "cpu" : "auto");
  }

  /** The initiator for this accelerator: {@code initiator}, or the choice of auto. */
  public InitiatorKind initiator(Accelerator accelerator) {
    if (initiator != InitiatorKind.AUTO) {
      return initiator;
    }
    return accelerator.gpu() ? InitiatorKind.GPU : InitiatorKind.CPU;
  }

  /**
   * The place of queues and data: {@code placement}. If that is null: queues in host memory, and
   * data on the accelerator if the controller reaches it there and {@link #avoidsCudaCopies} does
   * not keep it in host memory.
   */
  public Placement placement(NvmeController controller, Accelerator accelerator) {
    Placement given = placement;
    if (given != null) {
      return given;
    }
    if (avoidsCudaCopies(controller, accelerator)) {
      return Placement.HOST;
    }
    return Placements.reachable(accelerator, controller.function())
        ? Placement.VRAM_DATA
        : Placement.HOST;
  }

  /**
   * Whether data is in host memory for the sake of code that uses CUDA besides. That code takes or
   * frees memory, or launches a kernel for the first time, and the driver waits for all kernels.
   * Meanwhile an embedded controller cannot copy to GPU memory. A kernel that waits for that would
   * go on only when its commands have timed out. Data in host memory needs no driver.
   */
  public boolean avoidsCudaCopies(NvmeController controller, Accelerator accelerator) {
    return foreignCuda
        && placement == null
        && controller.function().polled()
        && accelerator.gpu()
        && initiator(accelerator) == InitiatorKind.GPU;
  }

  /**
   * Creates the queue pairs.
   *
   * @throws InvalidRequestException if a number is out of range, or if the initiator or the
   *     placement is not possible with this accelerator
   */
  public Initiator open(NvmeController controller, Accelerator accelerator) {
    accelerator.servePinned(controller.function());
    Placement where = placement(controller, accelerator);
    if (!where.hostData() && !accelerator.gpu()) {
      throw new InvalidRequestException(
          "placement %s needs a GPU; %s has host memory only, so only placement host is possible (gpunvme doctor says what stands in the way of a GPU)"
              .formatted(where, accelerator.name()));
    }
    if (initiator(accelerator) == InitiatorKind.CPU) {
      return openCpu(controller, where);
    }
    GpuInitiator gpu = openGpu(controller, accelerator, where);
    // One is left for a flush.
    int pairs = Math.min(controller.freeQueuePairs() - 1, QUEUE_PAIRS);
    if (initiator != InitiatorKind.AUTO
        || !avoidsCudaCopies(controller, accelerator)
        || pairs < 1) {
      return gpu;
    }
    return CloseAll.orClose(
        () -> {
          CpuInitiator cpu = with(pairs, 0, 0).openCpu(controller, where);
          cpu.cutShortTransfers();
          return new InitiatorByLength(gpu, cpu);
        },
        gpu::close);
  }

  private GpuInitiator openGpu(
      NvmeController controller, Accelerator accelerator, Placement where) {
    GpuAccelerator gpu = requireGpu(accelerator);
    if (threads != 0) {
      throw new InvalidRequestException(
          "threads " + threads + ": a GPU has a warp for each queue pair; leave it out");
    }
    return GpuInitiator.open(controller, gpu, where, queuePairs, depth, retries);
  }

  /**
   * The accelerator as a GPU, which can be an initiator.
   *
   * @throws InvalidRequestException if it is none
   */
  public static GpuAccelerator requireGpu(Accelerator accelerator) {
    return accelerator
        .cuda()
        .orElseThrow(
            () ->
                new InvalidRequestException(
                    "a GPU as initiator needs a GPU as accelerator, not %s: have the CPU as initiator (gpunvme doctor says what stands in the way of a GPU)"
                        .formatted(accelerator.name())));
  }

  private CpuInitiator openCpu(NvmeController controller, Placement where) {
    if (!where.hostQueues()) {
      throw new InvalidRequestException(
          "the CPU does not reach queues in GPU memory; placement "
              + where
              + " needs a GPU as initiator");
    }
    int pairs =
        queuePairs == 0 ? Math.clamp(controller.freeQueuePairs(), 1, QUEUE_PAIRS) : queuePairs;
    int perQueue = depth == 0 ? Math.min(DEPTH, controller.maxDepth()) : depth;
    int drivers = threads == 0 ? Math.min(suitableThreads(), pairs) : threads;
    return new CpuInitiator(controller, pairs, perQueue, drivers, retries);
  }
}
