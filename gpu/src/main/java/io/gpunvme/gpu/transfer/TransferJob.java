package io.gpunvme.gpu.transfer;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.memory.BusRange;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.HdrHistogram.Histogram;

/**
 * What those who carry out one plan share: the plan, the cursor into it, the first failure, and
 * what they did.
 */
final class TransferJob extends EarlyEnd {
  private static final long SHORT_BYTES = 256 << 10;

  private final TransferPlan plan;
  private final List<BusRange> buffers;
  private final TransferListener listener;
  private final AtomicInteger cursor = new AtomicInteger();
  private final Histogram latencies;

  /** Those that had a part in it; guarded by this, as are the sums. */
  private final List<QueueLane> lanes = new ArrayList<>(1);

  private long commands;
  private long bytes;
  private long retries;
  private long recoveries;
  private long sqDoorbells;
  private long cqDoorbells;

  /** A job that was {@link #check checked}; maps the buffers. */
  TransferJob(
      TransferPlan plan,
      List<DeviceBuffer> buffers,
      NvmeController controller,
      TransferListener listener) {
    this.plan = plan;
    this.buffers = new ArrayList<>(buffers.size());
    for (int i = 0; i < buffers.size(); i++) {
      this.buffers.add(buffers.get(i).mapFor(controller.function()));
    }
    this.listener = listener;
    latencies = listener.latencies();
  }

  TransferPlan plan() {
    return plan;
  }

  /**
   * Before anything is mapped.
   *
   * @throws InvalidRequestException if the buffers do not fit the plan
   */
  static void check(TransferPlan plan, List<DeviceBuffer> buffers, NvmeController controller) {
    if (buffers.size() < plan.buffers()) {
      throw new InvalidRequestException(
          "the plan needs %d buffers, but got %d".formatted(plan.buffers(), buffers.size()));
    }
    for (int i = 0; i < plan.buffers(); i++) {
      DeviceBuffer buffer = buffers.get(i);
      requireInside(buffer, plan.bufferEnd(i));
      if (buffer.isHost() != buffers.getFirst().isHost()) {
        throw new InvalidRequestException(
            "the buffers of a plan must all be in host memory, or all in GPU memory");
      }
    }
    requireAllowed(plan.writes(), controller);
  }

  /**
   * @throws InvalidRequestException if a transfer ends behind the buffer
   */
  static void requireInside(DeviceBuffer buffer, long end) {
    if (end > buffer.size()) {
      throw new InvalidRequestException(
          "the transfer ends at byte %d of a buffer of %d bytes".formatted(end, buffer.size()));
    }
  }

  /**
   * @throws InvalidRequestException if the controller is open for reading only and this writes
   */
  static void requireAllowed(boolean writes, NvmeController controller) {
    if (writes && !controller.options().allowWrite()) {
      throw new InvalidRequestException(
          controller.name()
              + " is open for reading only; set ControllerOptions.allowWrite (--allow-write) to"
              + " write");
    }
  }

  /** Where a command's data is, for the controller. */
  BusRange buffer(int command) {
    return buffers.get(plan.buffer(command));
  }

  @Override
  TransferListener listener() {
    return listener;
  }

  /** The histogram that gets all latencies. */
  Histogram latencies() {
    return latencies;
  }

  /** Latencies that were recorded elsewhere, because that is faster if they are many. */
  synchronized void add(Histogram part) {
    if (part != latencies) {
      latencies.add(part);
    }
  }

  /** Whether one queue pair carries it out, driven by a kernel. */
  boolean isShort() {
    return plan.commands() <= ShortTransfer.COMMANDS && plan.bytes() <= SHORT_BYTES;
  }

  /** What a lane did; by its thread, when it is over. */
  synchronized void add(QueueLane lane, TransferLane part) {
    if (!lanes.contains(lane)) {
      lanes.add(lane);
    }
    commands += part.commands();
    bytes += part.bytes();
    retries += part.retries();
    recoveries += part.recoveries();
    sqDoorbells += part.sqDoorbells();
    cqDoorbells += part.cqDoorbells();
    add(part.latency());
  }

  /**
   * What happened, when all lanes are done.
   *
   * @throws IllegalStateException if bytes are missing though nothing failed
   */
  synchronized TransferReport report(String initiator, Placement placement, int depth, long nanos) {
    if (bytes != plan.bytes()) {
      throw new IllegalStateException(
          "a plan of %d bytes ended after %d bytes without an error"
              .formatted(plan.bytes(), bytes));
    }
    int queuePairs = 0;
    for (QueueLane lane : lanes) {
      queuePairs += lane.queues().size();
    }
    return new TransferReport(
        "direct",
        initiator,
        placement,
        queuePairs,
        depth,
        lanes.size(),
        commands,
        sqDoorbells,
        cqDoorbells,
        bytes,
        nanos,
        retries,
        recoveries,
        latencies);
  }

  /** The next command nobody has taken, or -1. */
  int take() {
    if (!hasMore()) {
      return -1;
    }
    int command = cursor.getAndIncrement();
    return command < plan.commands() ? command : -1;
  }

  /** Whether commands are left that nobody has taken. */
  boolean hasMore() {
    return cursor.get() < plan.commands();
  }
}
