package io.gpunvme.gpu.transfer;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.Accelerators;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.Placements;
import io.gpunvme.nvme.driver.NvmeController;
import org.jspecify.annotations.Nullable;

/**
 * Who carries out a transfer, and with how many queues. 0 leaves a number to {@link #open}, which
 * then stays within what the controller has.
 *
 * @param initiator who issues the commands
 * @param placement where queues and data lie; null leaves it to {@link #placement(NvmeController,
 *     Accelerator)}
 * @param queuePairs I/O queue pairs; 0: {@link #QUEUE_PAIRS} or fewer
 * @param depth commands in flight per queue pair; 0: {@link #DEPTH} or fewer for the CPU, {@link
 *     io.gpunvme.gpu.queue.DeviceQueueOptions#DEPTH} or fewer for a GPU
 * @param threads threads that drive the queue pairs; 0: half the processors or fewer. Only for the
 *     CPU: a GPU has a warp for each queue pair
 * @param retries how often a command that may be retried is repeated, 0..100
 */
public record InitiatorOptions(
    InitiatorKind initiator,
    @Nullable Placement placement,
    int queuePairs,
    int depth,
    int threads,
    int retries) {
  /** Queue pairs unless another number is asked for. */
  public static final int QUEUE_PAIRS = 4;

  /** Commands in flight per queue pair unless another number is asked for. */
  public static final int DEPTH = 16;

  private static final int RETRIES = 8;
  private static final int MOST_THREADS = 4;

  /** Everything left to {@link #open}. */
  public static InitiatorOptions defaults() {
    return new InitiatorOptions(InitiatorKind.AUTO, null, 0, 0, 0, RETRIES);
  }

  /** The same with other numbers. */
  public InitiatorOptions with(int pairs, int perQueue, int drivers) {
    return new InitiatorOptions(initiator, placement, pairs, perQueue, drivers, retries);
  }

  /** The same for somebody else, or somewhere else. */
  public InitiatorOptions with(InitiatorKind who, @Nullable Placement where) {
    return new InitiatorOptions(who, where, queuePairs, depth, threads, retries);
  }

  /**
   * How many threads one side of a transfer gets on this machine: the other side needs some too.
   */
  public static int suitableThreads() {
    return Math.clamp(Runtime.getRuntime().availableProcessors() / 2, 1, MOST_THREADS);
  }

  /**
   * Opens the accelerator that this asks for: a GPU if it is named or the placement needs one, the
   * CPU stand-in if the CPU is named and the placement does not, else the best there is.
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

  /** Who issues the commands with this accelerator: {@code initiator}, or what auto stands for. */
  public InitiatorKind initiator(Accelerator accelerator) {
    if (initiator != InitiatorKind.AUTO) {
      return initiator;
    }
    return accelerator.gpu() ? InitiatorKind.GPU : InitiatorKind.CPU;
  }

  /**
   * Where queues and data lie: {@code placement}, or else data on the accelerator if the controller
   * reaches it there, with the queues in host memory.
   */
  public Placement placement(NvmeController controller, Accelerator accelerator) {
    Placement given = placement;
    if (given != null) {
      return given;
    }
    return Placements.reachable(accelerator, controller.function())
        ? Placement.VRAM_DATA
        : Placement.HOST;
  }

  /**
   * Creates the queue pairs.
   *
   * @throws InvalidRequestException if a number that was given is out of range, or if who or where
   *     is not possible with this accelerator
   */
  public Initiator open(NvmeController controller, Accelerator accelerator) {
    accelerator.servePinned(controller.function());
    Placement where = placement(controller, accelerator);
    if (!where.hostData() && !accelerator.gpu()) {
      throw new InvalidRequestException(
          "placement " + where + " needs a GPU; " + accelerator.name() + " has host memory only");
    }
    return initiator(accelerator) == InitiatorKind.GPU
        ? openGpu(controller, accelerator, where)
        : openCpu(controller, where);
  }

  private GpuInitiator openGpu(
      NvmeController controller, Accelerator accelerator, Placement where) {
    GpuAccelerator gpu =
        accelerator
            .cuda()
            .orElseThrow(
                () ->
                    new InvalidRequestException(
                        "a GPU as initiator needs a GPU as accelerator, not "
                            + accelerator.name()));
    if (threads != 0) {
      throw new InvalidRequestException(
          "threads " + threads + ": a GPU has a warp for each queue pair; leave it out");
    }
    return GpuInitiator.open(controller, gpu, where, queuePairs, depth, retries);
  }

  private CpuInitiator openCpu(NvmeController controller, Placement where) {
    if (!where.hostQueues()) {
      throw new InvalidRequestException(
          "the CPU does not reach queues in GPU memory; placement "
              + where
              + " needs a GPU as initiator");
    }
    int pairs =
        queuePairs == 0 ? Math.clamp(controller.maxQueuePairs(), 1, QUEUE_PAIRS) : queuePairs;
    int perQueue = depth == 0 ? Math.min(DEPTH, controller.maxDepth()) : depth;
    int drivers = threads == 0 ? Math.min(suitableThreads(), pairs) : threads;
    return new CpuInitiator(controller, pairs, perQueue, drivers, retries);
  }
}
