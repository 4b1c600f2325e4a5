package io.gpunvme.core.path.direct;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.gpu.Placement;
import io.gpunvme.core.path.DataPath;
import io.gpunvme.core.path.Failures;
import io.gpunvme.core.path.PathCall;
import io.gpunvme.core.path.PathKind;
import io.gpunvme.core.path.Range;
import io.gpunvme.core.path.RequestShape;
import io.gpunvme.core.path.StorageException;
import io.gpunvme.core.path.direct.DirectLane.Staged;
import io.gpunvme.core.transfer.Direction;
import io.gpunvme.core.transfer.InitiatorOptions;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.InvalidRequestException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import java.util.List;

/**
 * Reads and writes one namespace with commands of our own, whoever issues them. Whole blocks go
 * straight to buffers that the controller reaches; everything else by way of staging memory. Two
 * reads at a time, or one write: others wait.
 */
public final class DirectPath implements DataPath {
  /**
   * What a stream of long reads was seen to reach on an H200 (PCIe 5.0 x16), 10^9 bytes a second.
   */
  private static final double LONG_READS = 45;

  private static final double COMMANDS_PER_SECOND = 5e6;

  /** Half a million commands at 32 bytes. */
  private static final long COMMAND_BYTES = 16 << 20;

  /** Bus address and list of each page of 4 KiB, 16 bytes, of four buffers of 1 GiB. */
  private static final long DESCRIPTION_BYTES = 16 << 20;

  private final NvmeController controller;
  private final Namespace namespace;
  private final Placement placement;
  private final DirectLanes lanes;
  private volatile String mode;

  private DirectPath(
      NvmeController controller,
      Namespace namespace,
      Accelerator accelerator,
      InitiatorOptions options) {
    this.controller = controller;
    this.namespace = namespace;
    placement = options.placement(controller, accelerator);
    mode = options.initiator(accelerator) + "-initiated, " + placement;
    lanes =
        new DirectLanes(
            () -> new DirectLane(controller, namespace, accelerator, options, placement));
  }

  /**
   * Creates the queues.
   *
   * @param controller stays open longer than this
   * @throws InvalidRequestException if the options, the namespace or the accelerator do not fit
   *     together
   */
  public static DirectPath open(
      NvmeController controller, int nsid, Accelerator accelerator, InitiatorOptions options) {
    return new DirectPath(controller, controller.namespace(nsid), accelerator, options);
  }

  @Override
  public PathKind kind() {
    return PathKind.DIRECT;
  }

  @Override
  public String mode() {
    return mode;
  }

  @Override
  public long size() {
    return namespace.bytes();
  }

  @Override
  public int alignment() {
    return namespace.blockSize();
  }

  @Override
  public double expected(RequestShape shape) {
    return Math.min(LONG_READS, COMMANDS_PER_SECOND * Math.max(1, shape.meanLength()) / 1e9);
  }

  @Override
  public long gpuBytes() {
    long lane = COMMAND_BYTES + DESCRIPTION_BYTES + (placement.hostData() ? 0 : Staged.BYTES);
    return DirectLanes.MOST * lane;
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    boolean alone = direction == Direction.WRITE;
    // Blocks that are written in part are read first: nobody else writes meanwhile.
    DirectLane lane = alone ? lanes.takeAll() : lanes.take();
    try {
      carryOut(lane, direction, ranges, call);
    } finally {
      if (alone) {
        lanes.giveAll();
      } else {
        lanes.give(lane);
      }
    }
  }

  private void carryOut(DirectLane lane, Direction direction, List<Range> ranges, PathCall call) {
    for (Range r : ranges) {
      call.throwIfCancelled(r.offset(), r.length());
    }
    try {
      DirectLane.Commands commands = lane.new Commands(call);
      if (direction == Direction.READ) {
        new ReadJob(lane, commands).run(ranges);
      } else {
        new WriteJob(lane, commands).run(ranges);
      }
    } catch (RuntimeException e) {
      throw failure(lane, e, ranges, call);
    }
    note(lane.mode());
    call.counters().moved(direction, ranges.stream().mapToLong(Range::length).sum());
  }

  private void note(String done) {
    if (!done.isEmpty()) {
      int count = lanes.count();
      mode = count == 1 ? done : done + ", for each of " + count + " transfers at a time";
    }
  }

  /**
   * Has the namespace make durable what was written (NVM Command Set 1.0, 3.2.2), by a queue pair
   * of its own.
   *
   * @throws io.gpunvme.nvme.NvmeException if the controller cannot
   * @throws InvalidRequestException if others use all its queue pairs
   */
  public void flush() {
    lanes.takeAll();
    try {
      flush(controller, namespace.nsid());
    } catch (InvalidRequestException e) {
      // These may be all that there are; the next transfers get new ones.
      lanes.lanes().forEach(DirectLane::leaveQueues);
      flush(controller, namespace.nsid());
    } finally {
      lanes.giveAll();
    }
  }

  /** The same for a namespace that no path is open for. */
  public static void flush(NvmeController controller, int nsid) {
    try (BlockDevice cache = BlockDevice.open(controller, controller.namespace(nsid), 1)) {
      cache.flush();
    }
  }

  private RuntimeException failure(
      DirectLane lane, RuntimeException e, List<Range> ranges, PathCall call) {
    boolean usable =
        e instanceof NvmeStatusException
            || e instanceof InvalidRequestException
            || e instanceof CommandAbortedException
            || e instanceof StorageException;
    if (!usable) {
      lane.abandon(e);
    }
    long offset = ranges.getFirst().offset();
    long length = ranges.getFirst().length();
    if (e instanceof NvmeStatusException status && status.slba() >= 0) {
      offset = status.slba() * namespace.blockSize();
      length = namespace.blockSize();
    }
    return Failures.of(e, call.source(), offset, length);
  }

  /** Waits for transfers. Idempotent. */
  @Override
  public void close() {
    lanes.close();
  }
}
