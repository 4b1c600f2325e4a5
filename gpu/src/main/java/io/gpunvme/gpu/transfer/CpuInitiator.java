package io.gpunvme.gpu.transfer;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.WorkScope;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.driver.QueuePair;
import io.gpunvme.nvme.memory.BusRange;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Drives queue pairs from Java threads.
 *
 * <p>The queue pairs are lanes, each for one thread ({@link LanePool}). A long transfer takes all
 * lanes that are free, and its threads (a {@link TransferLane} each) keep them full from the plan's
 * common cursor, so a slow queue takes less of the work. A short one is carried out by the caller's
 * thread alone, on a queue pair that long ones do not use, and allocates nothing if it is one run
 * of blocks ({@link ShortTransfer}). Safe for all threads.
 */
public final class CpuInitiator implements Initiator {
  /** Lanes for short transfers, one for each thread that reads at the same time. */
  private static final int MOST_SHORT_LANES = 16;

  /**
   * So many of these lanes have several queue pairs if the controller is software: each of its
   * threads serves some queues, so several move the parts of one transfer. Where more threads read,
   * they keep it busy together.
   */
  private static final int MOST_WIDE_LANES = 4;

  private static final int QUEUES_OF_WIDE = 4;

  private static final long IDLE_SECONDS = 60;

  private final NvmeController controller;
  private final int queuePairs;
  private final int depth;
  private final LanePool pool;

  /** Wide lanes that may still be made, if above 0. */
  private final AtomicInteger wideLeft = new AtomicInteger();

  /** Of long transfers beside the caller's own; those that have nothing to do end. */
  private final ThreadPoolExecutor threads;

  /**
   * Creates the queue pairs.
   *
   * @param queuePairs 1..{@link NvmeController#maxQueuePairs}; while the controller has more, short
   *     transfers get others
   * @param depth commands in flight per queue pair, 1..{@link NvmeController#maxDepth}
   * @param threads 1..queuePairs
   * @param retries how often a retryable command is repeated, 0..100
   * @throws io.gpunvme.nvme.ProtocolException if the controller granted no I/O queues
   */
  public CpuInitiator(
      NvmeController controller, int queuePairs, int depth, int threads, int retries) {
    this(
        controller,
        queuePairs,
        depth,
        threads,
        retries,
        Thread.ofPlatform().daemon().name("gpunvme-lane-", 1).factory());
  }

  /** With threads of another making. */
  CpuInitiator(
      NvmeController controller,
      int queuePairs,
      int depth,
      int threads,
      int retries,
      ThreadFactory factory) {
    controller.requireQueuePairs();
    range("queue pairs", queuePairs, 1, controller.maxQueuePairs());
    range("depth", depth, 1, controller.maxDepth());
    range("threads", threads, 1, queuePairs);
    range("retries", retries, 0, 100);
    this.controller = controller;
    this.queuePairs = queuePairs;
    this.depth = depth;
    this.threads =
        new ThreadPoolExecutor(
            0,
            Integer.MAX_VALUE,
            IDLE_SECONDS,
            TimeUnit.SECONDS,
            new SynchronousQueue<>(),
            controller.function().home().threads(factory));
    List<QueuePair> queues = new ArrayList<>();
    try {
      for (int i = 0; i < queuePairs; i++) {
        queues.add(controller.createQueuePair(depth));
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> CloseAll.each(queues, controller::deleteQueuePair));
      throw e;
    }
    List<QueueLane> lanes = new ArrayList<>();
    for (int t = 0; t < threads; t++) {
      List<QueuePair> own = new ArrayList<>();
      for (int q = t; q < queues.size(); q += threads) {
        own.add(queues.get(q));
      }
      lanes.add(new QueueLane(controller, own, retries, false));
    }
    // One is left for a flush.
    int left = Math.max(0, controller.freeQueuePairs() - 1);
    pool = new LanePool(lanes, () -> shortLane(retries), Math.min(left, MOST_SHORT_LANES));
  }

  /**
   * Has short transfers cut into commands for several queue pairs, where the controller is software
   * and has enough. Before the first transfer. Without this a short transfer is as few commands as
   * the controller takes.
   */
  void cutShortTransfers() {
    int left = Math.max(0, controller.freeQueuePairs() - 1);
    if (controller.function().polled()) {
      int more = (left - MOST_SHORT_LANES) / (QUEUES_OF_WIDE - 1);
      wideLeft.set(Math.clamp(more, 0, MOST_WIDE_LANES));
    }
  }

  private QueueLane shortLane(int retries) {
    if (wideLeft.getAndDecrement() <= 0) {
      return shortLane(1, retries);
    }
    try {
      // Others may have taken some.
      return shortLane(Math.clamp(controller.freeQueuePairs() - 1, 1, QUEUES_OF_WIDE), retries);
    } catch (RuntimeException | Error e) {
      wideLeft.incrementAndGet();
      throw e;
    }
  }

  private QueueLane shortLane(int pairs, int retries) {
    List<QueuePair> own = new ArrayList<>(pairs);
    try {
      for (int i = 0; i < pairs; i++) {
        own.add(controller.createQueuePair(Math.min(depth, ShortTransfer.COMMANDS / pairs)));
      }
      return new QueueLane(controller, own, retries, true);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, () -> CloseAll.each(own, controller::deleteQueuePair));
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
  public int queuePairs() {
    return queuePairs;
  }

  @Override
  public int depth() {
    return depth;
  }

  @Override
  public long maxTransferBytes() {
    return controller.maxTransferBytes();
  }

  @Override
  public long pieceBytes() {
    return ShortTransfer.BYTES;
  }

  @Override
  public TransferReport run(
      TransferPlan plan, List<DeviceBuffer> buffers, TransferListener listener) {
    pool.requireOpen();
    TransferJob.check(plan, buffers, controller);
    long start = System.nanoTime();
    Placement placement = buffers.getFirst().isHost() ? Placement.HOST : Placement.VRAM_DATA;
    if (ShortTransfer.holds(plan.commands(), plan.bytes())) {
      return runShort(plan, buffers, listener, placement, start);
    }
    TransferJob job = new TransferJob(plan, buffers, controller, listener);
    WorkScope scope = new WorkScope(threads);
    Runnable own =
        () -> {
          try {
            do {
              carryOut(job, scope);
            } while (job.hasMore() && !job.failed());
          } catch (Throwable e) {
            // At once, so that the others end.
            job.fail(e);
          }
        };
    scope.finish(own, () -> {}, job::cancel).forEach(job::fail);
    long nanos = System.nanoTime() - start;
    job.throwIfFailed();
    return job.report(name(), placement, depth, nanos);
  }

  /** Carries out commands by a lane as long as this thread has it. */
  private void carryOut(TransferJob job, WorkScope scope) {
    QueueLane lane = pool.take(job);
    if (lane != null) {
      TransferLane own = part(job, lane, () -> haveHelp(job, scope));
      haveHelp(job, scope);
      own.run();
    }
  }

  private TransferLane part(TransferJob job, QueueLane lane, Runnable looked) {
    try {
      return new TransferLane(job, lane, pool, looked);
    } catch (Throwable e) {
      pool.give(lane, false);
      throw e;
    }
  }

  /** Gives each free lane a thread; done now and then. */
  private void haveHelp(TransferJob job, WorkScope scope) {
    try {
      QueueLane lane;
      while (job.hasMore() && !job.failed() && (lane = pool.tryTake()) != null) {
        scope.fork(part(job, lane, () -> {})::run);
      }
    } catch (Throwable e) {
      job.fail(e);
    }
  }

  private TransferReport runShort(
      TransferPlan plan,
      List<DeviceBuffer> buffers,
      TransferListener listener,
      Placement placement,
      long start) {
    List<BusRange> mapped = buffers.stream().map(b -> b.mapFor(controller.function())).toList();
    QueueLane lane = pool.takeShort(listener);
    ShortTransfer transfer = lane.shortTransfer();
    try {
      long sqDoorbells = lane.sqDoorbells();
      long cqDoorbells = lane.cqDoorbells();
      long recoveries = lane.loop().recoveries();
      transfer.begin(plan.nsid(), plan.blockSize(), listener);
      for (int i = 0; i < plan.commands(); i++) {
        BusRange buffer = mapped.get(plan.buffer(i));
        transfer.add(plan.opcode(i), plan.slba(i), plan.blocks(i), buffer, plan.bufferOffset(i));
      }
      transfer.run();
      return new TransferReport(
          "direct",
          name(),
          placement,
          lane.queues().size(),
          depth,
          1,
          plan.commands() + transfer.retries(),
          lane.sqDoorbells() - sqDoorbells,
          lane.cqDoorbells() - cqDoorbells,
          plan.bytes(),
          System.nanoTime() - start,
          transfer.retries(),
          lane.loop().recoveries() - recoveries,
          transfer.latencies());
    } finally {
      transfer.end();
      pool.give(lane, false);
    }
  }

  @Override
  public long move(
      Direction direction,
      Namespace namespace,
      long slba,
      long blocks,
      DeviceBuffer buffer,
      long bufferOffset,
      TransferListener listener) {
    int block = namespace.blockSize();
    long most = TransferPlan.blocksPerCommand(block, maxTransferBytes());
    TransferPlan.check(
        slba, blocks, namespace.blocks(), bufferOffset, block, TransferPlan.mostBlocks(block));
    if (!ShortTransfer.holds(Math.ceilDiv(blocks, most), blocks * block)) {
      return Initiator.super.move(
          direction, namespace, slba, blocks, buffer, bufferOffset, listener);
    }
    pool.requireOpen();
    TransferJob.requireInside(buffer, bufferOffset + blocks * block);
    TransferJob.requireAllowed(direction == Direction.WRITE, controller);
    BusRange mapped = buffer.mapFor(controller.function());
    QueueLane lane = pool.takeShort(listener);
    ShortTransfer transfer = lane.shortTransfer();
    try {
      transfer.begin(namespace.nsid(), block, listener);
      transfer.addRun(
          TransferPlan.opcode(direction),
          slba,
          blocks,
          lane.isWide() ? Math.min(most, ShortTransfer.part(blocks, block)) : most,
          mapped,
          bufferOffset);
      transfer.run();
      return transfer.retries();
    } finally {
      transfer.end();
      pool.give(lane, false);
    }
  }

  /** Waits for the transfers, deletes the queue pairs at the controller and frees them. */
  @Override
  public void close() {
    List<QueueLane> lanes = pool.close();
    threads.shutdown();
    List<QueuePair> all = lanes.stream().flatMap(lane -> lane.queues().stream()).toList();
    CloseAll.each(all, controller::deleteQueuePair);
  }
}
