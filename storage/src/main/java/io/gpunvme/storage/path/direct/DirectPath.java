package io.gpunvme.storage.path.direct;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.BufferCopies;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Initiator;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.gpu.transfer.TransferReport;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageFailures;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Reads and writes one namespace with commands of our own, whoever issues them. Whole blocks go
 * straight to buffers that the controller reaches; everything else by way of staging memory. One
 * transfer at a time: others wait.
 */
public final class DirectPath implements DataPath {
  /**
   * What a stream of long reads was seen to reach on an H200 (PCIe 5.0 x16), 10^9 bytes a second.
   */
  private static final double LONG_READS = 45;

  /** Buffers whose descriptions stay until the transfer's turn, if no other prepares more. */
  private static final int MOST_PREPARED = 4;

  private static final double COMMANDS_PER_SECOND = 5e6;

  /** Half a million commands at 32 bytes. */
  private static final long COMMAND_BYTES = 16 << 20;

  /** Bus address and list of each page of 4 KiB, 16 bytes, of ten buffers of 1 GiB. */
  private static final long DESCRIPTION_BYTES = 40 << 20;

  private final NvmeController controller;
  private final Namespace namespace;
  private final Accelerator accelerator;
  private final InitiatorOptions options;
  private final Placement placement;

  /** One transfer at a time; whoever waits longest is next, for whom many threads read beside. */
  private final ReentrantLock turns = new ReentrantLock(true);

  /** Null before the first transfer, and after one that left its queues unusable. */
  private volatile @Nullable Initiator initiator;

  private @Nullable Staged staged;

  /** The queue pair for flushes, from the first one on. */
  private @Nullable BlockDevice cache;

  private volatile String mode;
  private boolean closed;

  private DirectPath(
      NvmeController controller,
      Namespace namespace,
      Accelerator accelerator,
      InitiatorOptions options) {
    this.controller = controller;
    this.namespace = namespace;
    this.accelerator = accelerator;
    this.options = options;
    placement = options.placement(controller, accelerator);
    mode = options.initiator(accelerator) + "-initiated, " + placement;
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
    DirectPath path = new DirectPath(controller, controller.namespace(nsid), accelerator, options);
    path.initiator();
    return path;
  }

  private Initiator initiator() {
    Initiator there = initiator;
    if (there == null) {
      there = options.open(controller, accelerator);
      initiator = there;
    }
    return there;
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

  /** True: staged blocks go along with the others in one run of the initiator. */
  @Override
  public boolean plansReads() {
    return true;
  }

  @Override
  public double expected(RequestShape shape) {
    return Math.min(LONG_READS, COMMANDS_PER_SECOND * Math.max(1, shape.meanLength()) / 1e9);
  }

  @Override
  public long gpuBytes() {
    return COMMAND_BYTES + DESCRIPTION_BYTES + (placement.hostData() ? 0 : Staged.BYTES);
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    prepare(ranges);
    carryOut(direction, ranges, call);
  }

  /** While another transfer has its turn. */
  private void prepare(List<Range> ranges) {
    Initiator there = initiator;
    if (there != null) {
      try {
        ranges.stream().map(Range::buffer).distinct().limit(MOST_PREPARED).forEach(there::prepare);
      } catch (RuntimeException e) {
        // The transfer itself meets the same, and says so.
      }
    }
  }

  private void carryOut(Direction direction, List<Range> ranges, PathCall call) {
    turns.lock();
    try {
      carryOutNow(direction, ranges, call);
    } finally {
      turns.unlock();
    }
  }

  private void carryOutNow(Direction direction, List<Range> ranges, PathCall call) {
    if (closed) {
      throw new IllegalStateException(call.source() + " is closed");
    }
    for (Range r : ranges) {
      call.throwIfCancelled(r.offset(), r.length());
    }
    try {
      Commands commands = new Commands(call);
      if (direction == Direction.READ) {
        new ReadJob(namespace, placement, this::staged, commands).run(ranges);
      } else {
        new WriteJob(namespace, placement, this::staged, commands).run(ranges);
      }
    } catch (RuntimeException e) {
      throw failure(e, ranges, call);
    }
    call.counters().moved(direction, ranges.stream().mapToLong(Range::length).sum());
  }

  /**
   * Has the namespace make durable what was written (NVM Command Set 1.0, 3.2.2), by a queue pair
   * that is kept for it; if all are taken, those of the transfers make room for one of its own.
   *
   * @throws io.gpunvme.nvme.NvmeException if the controller cannot
   * @throws InvalidRequestException if others use all its queue pairs
   */
  public void flush() {
    turns.lock();
    try {
      flushNow();
    } finally {
      turns.unlock();
    }
  }

  private void flushNow() {
    if (closed) {
      throw new IllegalStateException(controller.name() + " is closed");
    }
    BlockDevice kept = cache;
    if (kept == null) {
      try {
        kept = BlockDevice.open(controller, namespace, 1);
        cache = kept;
      } catch (InvalidRequestException e) {
        Initiator queues = initiator;
        if (queues == null) {
          throw e;
        }
        // These may be all that there are; the next transfer gets new ones.
        initiator = null;
        queues.close();
        flush(controller, namespace.nsid());
        return;
      }
    }
    kept.flush();
  }

  /** The same for a namespace that no path is open for. */
  public static void flush(NvmeController controller, int nsid) {
    try (BlockDevice cache = BlockDevice.open(controller, controller.namespace(nsid), 1)) {
      cache.flush();
    }
  }

  private Staged staged() {
    Staged there = staged;
    if (there == null) {
      there = new Staged(accelerator, placement);
      staged = there;
    }
    return there;
  }

  private RuntimeException failure(RuntimeException e, List<Range> ranges, PathCall call) {
    boolean usable =
        e instanceof NvmeStatusException
            || e instanceof InvalidRequestException
            || e instanceof CommandAbortedException
            || e instanceof StorageException;
    if (!usable) {
      abandon(e);
    }
    long offset = ranges.getFirst().offset();
    long length = ranges.getFirst().length();
    if (e instanceof NvmeStatusException status && status.slba() >= 0) {
      offset = status.slba() * namespace.blockSize();
      length = namespace.blockSize();
    }
    return StorageFailures.of(e, call.source(), offset, length);
  }

  /** The next transfer gets queues of its own. */
  private void abandon(RuntimeException e) {
    Initiator broken = initiator;
    initiator = null;
    if (broken != null) {
      CloseAll.after(e, broken::close);
    }
  }

  /** Runs commands of one call and counts them. */
  final class Commands {
    private final PathCall call;

    Commands(PathCall call) {
      this.call = call;
    }

    PathCall call() {
      return call;
    }

    /** Commands to come. */
    TransferPlan.Builder plan(Direction direction) {
      return TransferPlan.builder(direction, namespace, initiator().maxTransferBytes());
    }

    /** Moves whole blocks between the namespace and buffers of this path's placement. */
    void run(TransferPlan.Builder plan, List<DeviceBuffer> buffers) {
      if (plan.isEmpty()) {
        return;
      }
      TransferReport report =
          initiator()
              .run(
                  plan.build(),
                  buffers,
                  new TransferListener() {
                    @Override
                    public void moved(long bytes) {}

                    @Override
                    public boolean isCancelled() {
                      return call.isCancelled();
                    }
                  });
      call.counters().operations(report.latency());
      call.counters().retried(report.retries());
      mode =
          "%s-initiated, %s, %d queue pairs of depth %d"
              .formatted(
                  report.initiator(), report.placement(), report.queuePairs(), report.depth());
    }
  }

  /** Memory that the controller reaches, for what cannot go straight to its buffer. */
  static final class Staged implements AutoCloseable {
    private static final long BYTES = 16 << 20;

    private final DeviceBuffer memory;
    private final BufferCopies copies;

    Staged(Accelerator accelerator, Placement placement) {
      memory = placement.allocate(accelerator, BYTES);
      try {
        copies = accelerator.copies();
      } catch (RuntimeException e) {
        memory.close();
        throw e;
      }
    }

    DeviceBuffer memory() {
      return memory;
    }

    BufferCopies copies() {
      return copies;
    }

    @Override
    public void close() {
      try {
        copies.close();
      } finally {
        memory.close();
      }
    }
  }

  @Override
  public void close() {
    turns.lock();
    try {
      closeNow();
    } finally {
      turns.unlock();
    }
  }

  private void closeNow() {
    if (closed) {
      return;
    }
    closed = true;
    CloseAll.all(staged, initiator, cache);
  }
}
