package io.gpunvme.gpu.transfer;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair;
import java.util.ArrayList;
import java.util.List;
import org.HdrHistogram.Histogram;

/**
 * Drives queue pairs from Java threads.
 *
 * <p>Each thread (a {@link TransferLane}) owns some of the queue pairs and keeps them full from the
 * plan's common cursor, so a slow queue takes less of the work. One transfer at a time.
 */
public final class CpuInitiator implements Initiator {
  private final NvmeController controller;
  private final List<QueuePair> queues = new ArrayList<>();
  private final int depth;
  private final int threads;
  private final int retries;

  /**
   * Creates the queue pairs.
   *
   * @param queuePairs 1..{@link NvmeController#maxQueuePairs}
   * @param depth commands in flight per queue pair, 1..{@link NvmeController#maxDepth}
   * @param threads 1..queuePairs
   * @param retries how often a retryable command is repeated, 0..100
   * @throws io.gpunvme.nvme.ProtocolException if the controller granted no I/O queues
   */
  public CpuInitiator(
      NvmeController controller, int queuePairs, int depth, int threads, int retries) {
    controller.requireQueuePairs();
    range("queue pairs", queuePairs, 1, controller.maxQueuePairs());
    range("depth", depth, 1, controller.maxDepth());
    range("threads", threads, 1, queuePairs);
    range("retries", retries, 0, 100);
    this.controller = controller;
    this.depth = depth;
    this.threads = threads;
    this.retries = retries;
    try {
      for (int i = 0; i < queuePairs; i++) {
        queues.add(controller.createQueuePair(depth));
      }
    } catch (RuntimeException e) {
      close();
      throw e;
    }
  }

  private static void range(String what, int value, int low, int high) {
    if (value < low || value > high) {
      throw new InvalidRequestException(what + " " + value + " is outside " + low + ".." + high);
    }
  }

  @Override
  public String name() {
    return "CPU";
  }

  @Override
  public long maxTransferBytes() {
    return controller.maxTransferBytes();
  }

  @Override
  public synchronized TransferReport run(
      TransferPlan plan, List<DeviceBuffer> buffers, TransferListener listener) {
    TransferJob.check(plan, buffers, controller);
    TransferJob job = new TransferJob(plan, buffers, controller, listener);
    long sqBefore = queues.stream().mapToLong(QueuePair::sqDoorbells).sum();
    long cqBefore = queues.stream().mapToLong(QueuePair::cqDoorbells).sum();
    List<TransferLane> lanes = new ArrayList<>();
    for (int t = 0; t < threads; t++) {
      List<QueuePair> own = new ArrayList<>();
      for (int q = t; q < queues.size(); q += threads) {
        own.add(queues.get(q));
      }
      lanes.add(new TransferLane(controller, job, own, retries));
    }
    long start = System.nanoTime();
    runAll(lanes, job);
    long nanos = System.nanoTime() - start;
    job.throwIfFailed();
    long moved = lanes.stream().mapToLong(TransferLane::bytes).sum();
    if (moved != plan.bytes()) {
      throw new IllegalStateException(
          "a plan of " + plan.bytes() + " bytes ended after " + moved + " bytes without an error");
    }
    Histogram latency = new Histogram(lanes.getFirst().latency());
    lanes.forEach(lane -> latency.add(lane.latency()));
    return new TransferReport(
        "direct",
        name(),
        buffers.getFirst().isHost() ? Placement.HOST : Placement.VRAM_DATA,
        queues.size(),
        depth,
        threads,
        lanes.stream().mapToLong(TransferLane::commands).sum(),
        queues.stream().mapToLong(QueuePair::sqDoorbells).sum() - sqBefore,
        queues.stream().mapToLong(QueuePair::cqDoorbells).sum() - cqBefore,
        moved,
        nanos,
        lanes.stream().mapToLong(TransferLane::retries).sum(),
        lanes.stream().mapToLong(TransferLane::recoveries).sum(),
        latency);
  }

  /** The first lane runs on the caller's thread; an interrupt of the caller stops all of them. */
  private static void runAll(List<TransferLane> lanes, TransferJob job) {
    List<Thread> others = new ArrayList<>();
    for (TransferLane lane : lanes.subList(1, lanes.size())) {
      others.add(
          Thread.ofPlatform().name("gpunvme-lane-" + (others.size() + 1)).daemon().start(lane));
    }
    lanes.getFirst().run();
    boolean interrupted = Thread.interrupted();
    for (Thread thread : others) {
      while (thread.isAlive()) {
        try {
          thread.join();
        } catch (InterruptedException e) {
          interrupted = true;
          job.cancel();
        }
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Deletes the queue pairs at the controller and frees them. */
  @Override
  public synchronized void close() {
    List<QueuePair> all = List.copyOf(queues);
    queues.clear();
    CloseAll.each(all, controller::deleteQueuePair);
  }
}
