package io.gpunvme.storage.path.direct;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.BrokenInitiatorException;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Initiator;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.gpu.transfer.TransferPlan;
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
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import java.util.function.Supplier;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * Reads and writes one namespace with commands of our own, whoever issues them. Whole blocks go
 * straight to buffers that the controller reaches; everything else by way of staging memory.
 * Transfers share the queue pairs, as the {@link Initiator} says.
 */
public final class DirectPath implements DataPath {
  /**
   * What a stream of long reads was seen to reach on an H200 (PCIe 5.0 x16), 10^9 bytes a second.
   */
  private static final double LONG_READS = 45;

  private static final double COMMANDS_PER_SECOND = 5e6;

  /** Half a million commands at 32 bytes. */
  private static final long COMMAND_BYTES = 16 << 20;

  /** Bus address and list of each page of 4 KiB, 16 bytes, of ten buffers of 1 GiB. */
  private static final long DESCRIPTION_BYTES = 40 << 20;

  private final NvmeController controller;
  private final Namespace namespace;
  private final Placement placement;

  /** Opens another one. */
  private final Supplier<Initiator> initiators;

  private final StagingPool staging;

  /**
   * Writes of whole blocks share it; one that writes blocks in part, and reads them first, is
   * alone.
   */
  private final ReadWriteLock writes = new ReentrantReadWriteLock(true);

  /** Transfers share it; who takes the queues away is alone. */
  private final ReentrantReadWriteLock service = new ReentrantReadWriteLock();

  /** Null before the first transfer, and after one that left its queues unusable. */
  private volatile @Nullable Initiator initiator;

  /** Of flushes, one at a time; taken before {@link #service}. */
  private final Lock flushing = new ReentrantLock();

  /** The queue pair for flushes, from the first one on; guarded by {@link #flushing}. */
  private @Nullable BlockDevice cache;

  private volatile String mode;
  private volatile boolean closed;

  private DirectPath(
      NvmeController controller,
      Namespace namespace,
      Accelerator accelerator,
      InitiatorOptions options,
      Supplier<Initiator> initiators) {
    this.controller = controller;
    this.namespace = namespace;
    this.initiators = initiators;
    placement = options.placement(controller, accelerator);
    staging = new StagingPool(accelerator, placement);
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
    return open(
        controller, nsid, accelerator, options, () -> options.open(controller, accelerator));
  }

  /**
   * The same with other initiators.
   *
   * @param initiators each is closed by the path, which asks for another when one is unusable
   */
  static DirectPath open(
      NvmeController controller,
      int nsid,
      Accelerator accelerator,
      InitiatorOptions options,
      Supplier<Initiator> initiators) {
    DirectPath path =
        new DirectPath(controller, controller.namespace(nsid), accelerator, options, initiators);
    path.initiator();
    return path;
  }

  private Initiator initiator() {
    Initiator there = initiator;
    return there == null ? openInitiator() : there;
  }

  private synchronized Initiator openInitiator() {
    Initiator there = initiator;
    if (there == null) {
      there = initiators.get();
      mode =
          "%s-initiated, %s, %d queue pairs of depth %d"
              .formatted(there.name(), placement, there.queuePairs(), there.depth());
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
    return COMMAND_BYTES
        + DESCRIPTION_BYTES
        + (placement.hostData() ? 0 : StagingPool.MOST_ON_GPU * StagingPool.BYTES);
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    for (Range r : ranges) {
      call.throwIfCancelled(r.offset(), r.length());
    }
    Commands commands = new Commands(call);
    RuntimeException failure = attempt(direction, ranges, commands);
    while (failure instanceof BrokenInitiatorException && abandon(commands, failure)) {
      // Another transfer had left its queues unusable before this one had its turn.
      commands = new Commands(call);
      failure = attempt(direction, ranges, commands);
    }
    if (failure != null) {
      throw failure(failure, commands, ranges, call);
    }
    long bytes = 0;
    for (Range r : ranges) {
      bytes += r.length();
    }
    call.counters().moved(direction, bytes);
  }

  private @Nullable RuntimeException attempt(
      Direction direction, List<Range> ranges, Commands commands) {
    service.readLock().lock();
    try {
      carryOutNow(direction, ranges, commands);
      return null;
    } catch (RuntimeException e) {
      return e;
    } finally {
      service.readLock().unlock();
    }
  }

  private void carryOutNow(Direction direction, List<Range> ranges, Commands commands) {
    requireOpen();
    try (StagingPool.Loan staged = staging.loan()) {
      if (direction == Direction.READ) {
        new ReadJob(namespace, placement, staged, commands).run(ranges);
      } else {
        write(new WriteJob(namespace, placement, staged, commands), ranges);
      }
    }
  }

  private void requireOpen() {
    if (closed) {
      throw new IllegalStateException(controller.name() + " is closed");
    }
  }

  private void write(WriteJob job, List<Range> ranges) {
    Lock lock = job.isWhole(ranges) ? writes.readLock() : writes.writeLock();
    lock.lock();
    try {
      job.run(ranges);
    } finally {
      lock.unlock();
    }
  }

  /**
   * Has the namespace make durable what was written (NVM Command Set 1.0, 3.2.2), by a queue pair
   * that is kept for it; if all are taken, those of the transfers make room for one of its own.
   *
   * @throws io.gpunvme.nvme.NvmeException if the controller cannot
   * @throws InvalidRequestException if others use all its queue pairs
   */
  public void flush() {
    flushing.lock();
    try {
      flushNow();
    } finally {
      flushing.unlock();
    }
  }

  private void flushNow() {
    requireOpen();
    BlockDevice kept = cache;
    if (kept == null) {
      try {
        kept = BlockDevice.open(controller, namespace, 1);
        cache = kept;
      } catch (InvalidRequestException e) {
        flushInTheirPlace(e);
        return;
      }
    }
    kept.flush();
  }

  /** The queue pairs of transfers may be all that there are; the next transfer gets new ones. */
  private void flushInTheirPlace(InvalidRequestException none) {
    service.writeLock().lock();
    try {
      Initiator queues = initiator;
      if (queues == null) {
        throw none;
      }
      initiator = null;
      queues.close();
      flush(controller, namespace.nsid());
    } finally {
      service.writeLock().unlock();
    }
  }

  /** The same for a namespace that no path is open for. */
  public static void flush(NvmeController controller, int nsid) {
    try (BlockDevice cache = BlockDevice.open(controller, controller.namespace(nsid), 1)) {
      cache.flush();
    }
  }

  private RuntimeException failure(
      RuntimeException e, Commands commands, List<Range> ranges, PathCall call) {
    boolean usable =
        e instanceof NvmeStatusException
            || e instanceof InvalidRequestException
            || e instanceof CommandAbortedException
            || e instanceof StorageException;
    if (!usable) {
      abandon(commands, e);
    }
    long offset = ranges.getFirst().offset();
    long length = ranges.getFirst().length();
    if (e instanceof NvmeStatusException status && status.slba() >= 0) {
      offset = status.slba() * namespace.blockSize();
      length = namespace.blockSize();
    }
    return StorageFailures.of(e, call.source(), offset, length);
  }

  /**
   * The next transfer gets queues of its own; those who use the broken ones come to an end first.
   *
   * @return false if that has to be left to the next one: this thread is in the middle of another
   *     transfer, which asked whether to end
   */
  private boolean abandon(Commands commands, RuntimeException e) {
    if (service.getReadHoldCount() > 0) {
      return false;
    }
    service.writeLock().lock();
    try {
      Initiator broken = commands.initiator;
      if (broken != null && broken == initiator) {
        initiator = null;
        CloseAll.after(e, broken::close);
      }
      return true;
    } finally {
      service.writeLock().unlock();
    }
  }

  /** Runs commands of one call and counts them. */
  final class Commands implements TransferListener {
    private final PathCall call;

    /** Who carries them out, from the first one on. */
    private @Nullable Initiator initiator;

    Commands(PathCall call) {
      this.call = call;
    }

    PathCall call() {
      return call;
    }

    private Initiator initiator() {
      Initiator there = initiator;
      if (there == null) {
        there = DirectPath.this.initiator();
        initiator = there;
      }
      return there;
    }

    /** Commands to come. */
    TransferPlan.Builder plan(Direction direction) {
      return TransferPlan.builder(direction, namespace, initiator().maxTransferBytes());
    }

    /** Moves whole blocks between the namespace and buffers of this path's placement. */
    void run(TransferPlan.Builder plan, List<DeviceBuffer> buffers) {
      if (!plan.isEmpty()) {
        call.counters().retried(initiator().run(plan.build(), buffers, this).retries());
      }
    }

    @Override
    public void moved(long bytes) {}

    @Override
    public boolean isCancelled() {
      return call.isCancelled();
    }

    @Override
    public Histogram latencies() {
      return call.counters().latencies();
    }
  }

  @Override
  public void close() {
    flushing.lock();
    service.writeLock().lock();
    try {
      if (!closed) {
        closed = true;
        CloseAll.all(staging, initiator, cache);
      }
    } finally {
      service.writeLock().unlock();
      flushing.unlock();
    }
  }
}
