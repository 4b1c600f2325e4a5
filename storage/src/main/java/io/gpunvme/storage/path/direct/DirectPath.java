package io.gpunvme.storage.path.direct;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.base.SharedLock;
import io.gpunvme.base.SharedLock.Seat;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.BrokenInitiatorException;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Initiator;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferPlan;
import io.gpunvme.nvme.CommandAbortedException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.pci.NumaHome;
import io.gpunvme.storage.path.DataPath;
import io.gpunvme.storage.path.PathCall;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.RequestShape;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageFailures;
import io.gpunvme.storage.path.direct.StagingPool.Staged;
import java.util.List;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;
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

  /** The longest range that is always read by way of staging memory in one piece. */
  private static final long SHORT_STAGED = 64 << 10;

  /** The longest that the calling thread reads piece by piece, if it needs nobody else for that. */
  private static final long MOST_IN_PIECES = 16 << 20;

  private static final String SHORT_BY_CPU = "; up to 16 MiB CPU-initiated";

  private static final String FOREIGN_CUDA =
      "; an embedded controller's data goes by way of host memory, because other code uses CUDA in"
          + " this process";

  /** Data pointers name bytes at multiples of this (Base 2.0, 4.1.1). */
  static final int POINTER_ALIGNMENT = 4;

  private final NvmeController controller;
  private final Namespace namespace;
  private final Placement placement;

  /** Opens another one. */
  private final Supplier<Initiator> initiators;

  private final StagingPool staging;

  /** For single reads: two pieces each. */
  private final StagingPool pieces;

  /**
   * Writes of whole blocks share it; one that writes blocks in part, and reads them first, is
   * alone.
   */
  private final ReadWriteLock writes;

  /** Transfers share it; who takes the queues away is alone. */
  private final SharedLock<Boolean> service = new SharedLock<>(() -> true);

  /**
   * Null before the first transfer, and after one that left its queues unusable. It stays what it
   * is while {@link #service} is shared.
   */
  private volatile @Nullable Initiator initiator;

  /** Of flushes, one at a time; taken before {@link #service}. */
  private final Lock flushing = new ReentrantLock();

  /** The queue pair for flushes, from the first one on; guarded by {@link #flushing}. */
  private @Nullable BlockDevice cache;

  /** Why data is where it is, if that is not plain; else empty. */
  private final String reason;

  private volatile String mode;
  private volatile boolean closed;

  private DirectPath(
      NvmeController controller,
      Namespace namespace,
      Accelerator accelerator,
      InitiatorOptions options,
      Supplier<Initiator> initiators,
      ReadWriteLock writes) {
    this.writes = writes;
    this.controller = controller;
    this.namespace = namespace;
    this.initiators = initiators;
    placement = options.placement(controller, accelerator);
    NumaHome home = controller.function().home();
    staging = StagingPool.forRounds(accelerator, placement, home, namespace.bytes());
    pieces = placement.hostData() ? StagingPool.forPieces(accelerator, home) : staging;
    reason = options.avoidsCudaCopies(controller, accelerator) ? FOREIGN_CUDA : "";
    mode = options.initiator(accelerator) + "-initiated, " + placement + reason;
  }

  /**
   * Creates the queues.
   *
   * @param controller stays open longer than this
   * @param writes held by the writes of all who write to the namespace and do not want to lose what
   *     others write to the same block; fair
   * @throws InvalidRequestException if the options, the namespace or the accelerator do not fit
   *     together
   */
  public static DirectPath open(
      NvmeController controller,
      int nsid,
      Accelerator accelerator,
      InitiatorOptions options,
      ReadWriteLock writes) {
    return open(
        controller,
        nsid,
        accelerator,
        options,
        () -> options.open(controller, accelerator),
        writes);
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
      Supplier<Initiator> initiators,
      ReadWriteLock writes) {
    DirectPath path =
        new DirectPath(
            controller, controller.namespace(nsid), accelerator, options, initiators, writes);
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
          "%s-initiated, %s, %d queue pairs of depth %d%s%s"
              .formatted(
                  there.name(),
                  placement,
                  there.queuePairs(),
                  there.depth(),
                  there.of(0) == there ? "" : SHORT_BY_CPU,
                  reason);
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
        + (placement.hostData() ? 0 : StagingPool.MOST_ON_GPU * StagingPool.BYTES_ON_GPU);
  }

  @Override
  public void transfer(Direction direction, List<Range> ranges, PathCall call) {
    if (ranges.size() == 1) {
      Range r = ranges.getFirst();
      transfer(direction, r.offset(), r.buffer(), r.bufferOffset(), r.length(), call);
      return;
    }
    long bytes = 0;
    for (Range r : ranges) {
      call.throwIfCancelled(r.offset(), r.length());
      bytes += r.length();
    }
    Failed failed = attempt(direction, ranges, bytes, call);
    while (failed != null) {
      requireAnother(failed, ranges.getFirst().offset(), ranges.getFirst().length(), call);
      failed = attempt(direction, ranges, bytes, call);
    }
    call.counters().moved(direction, bytes);
  }

  private @Nullable Failed attempt(
      Direction direction, List<Range> ranges, long bytes, PathCall call) {
    Seat<Boolean> seat = service.enter();
    try {
      requireOpen();
      carryOut(direction, ranges, bytes, call);
      return null;
    } catch (RuntimeException e) {
      return new Failed(e, initiator);
    } finally {
      service.leave(seat);
    }
  }

  private void carryOut(Direction direction, List<Range> ranges, long bytes, PathCall call) {
    try (StagingPool.Loan staged = staging.loan()) {
      Commands commands = new Commands(initiator().of(bytes), call);
      if (direction == Direction.READ) {
        new ReadJob(namespace, staged, commands).run(ranges);
      } else {
        write(new WriteJob(namespace, staged, commands), ranges);
      }
    }
  }

  /**
   * Whole blocks, and a buffer that the controller reaches, need neither a plan nor a list; nor
   * does a read by way of staging memory that is short, or that this thread can do by itself.
   */
  @Override
  public void transfer(
      Direction direction,
      long offset,
      DeviceBuffer buffer,
      long bufferOffset,
      long length,
      PathCall call) {
    call.throwIfCancelled(offset, length);
    Failed failed = attempt(direction, offset, buffer, bufferOffset, length, call);
    while (failed != null) {
      requireAnother(failed, offset, length, call);
      failed = attempt(direction, offset, buffer, bufferOffset, length, call);
    }
    call.counters().moved(direction, length);
  }

  private @Nullable Failed attempt(
      Direction direction,
      long offset,
      DeviceBuffer buffer,
      long bufferOffset,
      long length,
      PathCall call) {
    Seat<Boolean> seat = service.enter();
    try {
      requireOpen();
      Initiator by = initiator().of(length);
      if (length > 0 && isStraight(offset, length, buffer, bufferOffset)) {
        moveStraight(by, direction, offset, buffer, bufferOffset, length, call);
      } else if (direction == Direction.READ && length > 0 && isInPieces(by, buffer, length)) {
        readStaged(by, offset, buffer, bufferOffset, length, call);
      } else {
        Range range = new Range(offset, buffer, bufferOffset, length);
        carryOut(direction, List.of(range), length, call);
      }
      return null;
    } catch (RuntimeException e) {
      return new Failed(e, initiator);
    } finally {
      service.leave(seat);
    }
  }

  /**
   * Whether a read that is not straight needs no plan: nothing of it goes straight to its place.
   */
  private boolean isInPieces(Initiator by, DeviceBuffer buffer, long length) {
    return length <= SHORT_STAGED
        || (length <= MOST_IN_PIECES && by.pieceBytes() > 0 && !isReached(buffer));
  }

  private void moveStraight(
      Initiator by,
      Direction direction,
      long offset,
      DeviceBuffer buffer,
      long bufferOffset,
      long length,
      PathCall call) {
    Lock writing = direction == Direction.READ ? null : writes.readLock();
    if (writing != null) {
      writing.lock();
    }
    try {
      move(by, direction, offset, buffer, bufferOffset, length, call);
    } finally {
      if (writing != null) {
        writing.unlock();
      }
    }
  }

  private void move(
      Initiator by,
      Direction direction,
      long offset,
      DeviceBuffer buffer,
      long bufferOffset,
      long length,
      PathCall call) {
    int block = namespace.blockSize();
    long retries =
        by.move(direction, namespace, offset / block, length / block, buffer, bufferOffset, call);
    call.retried(retries);
  }

  /**
   * Reads the blocks in which a range lies to staging memory, and copies it from there: each piece
   * while the next one is read.
   */
  private void readStaged(
      Initiator by,
      long offset,
      DeviceBuffer buffer,
      long bufferOffset,
      long length,
      PathCall call) {
    int block = namespace.blockSize();
    long first = offset & -block;
    long end = (offset + length + block - 1) & -block;
    long piece = by.pieceBytes() > 0 ? by.pieceBytes() : end - first;
    Staged staged = pieces.take();
    try {
      long half = 0;
      for (long at = first; at < end; at += piece) {
        long bytes = Math.min(piece, end - at);
        if (at > first) {
          call.throwIfCancelled(at, bytes);
        }
        move(by, Direction.READ, at, staged.memory(), half, bytes, call);
        if (at > first) {
          staged.copies().await();
        }
        long from = Math.max(at, offset);
        long n = Math.min(at + bytes, offset + length) - from;
        staged
            .copies()
            .add(staged.memory(), half + from - at, buffer, bufferOffset + from - offset, n);
        staged.copies().start();
        half = piece - half;
      }
      staged.copies().await();
    } finally {
      pieces.give(staged);
    }
    call.counters().staged(length);
    call.counters().overread(end - first - length);
  }

  /** Whether commands can move a range: whole blocks, to a place that data pointers can name. */
  private boolean isStraight(long offset, long length, DeviceBuffer buffer, long bufferOffset) {
    return ((offset | length) & (namespace.blockSize() - 1)) == 0
        && bufferOffset % POINTER_ALIGNMENT == 0
        && isReached(buffer);
  }

  /** Whether commands can name the buffer: it is in the kind of memory that the placement says. */
  private boolean isReached(DeviceBuffer buffer) {
    return buffer.isHost() == placement.hostData();
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
    BlockDevice kept = cache == null ? openCache() : cache;
    cache = kept;
    if (kept == null) {
      flushInTheirPlace();
    } else {
      kept.flush();
    }
  }

  /** Of what transfers have left, so that they find theirs again; null if that is nothing. */
  private @Nullable BlockDevice openCache() {
    Seat<Boolean> seat = service.enter();
    try {
      return initiator == null ? null : BlockDevice.open(controller, namespace, 1);
    } catch (InvalidRequestException e) {
      return null;
    } finally {
      service.leave(seat);
    }
  }

  /** The queue pairs of transfers may be all that there are; the next transfer gets new ones. */
  private void flushInTheirPlace() {
    service.enterAlone();
    try {
      Initiator queues = initiator;
      initiator = null;
      CloseAll.all(queues);
      flush(controller, namespace.nsid());
    } finally {
      service.leaveAlone();
    }
  }

  /** The same for a namespace that no path is open for. */
  public static void flush(NvmeController controller, int nsid) {
    try (BlockDevice cache = BlockDevice.open(controller, controller.namespace(nsid), 1)) {
      cache.flush();
    }
  }

  /**
   * Why an attempt failed.
   *
   * @param by who was to carry it out; null if there was nobody yet
   */
  private record Failed(RuntimeException why, @Nullable Initiator by) {}

  /**
   * Returns if another attempt can help: another transfer had left its queues unusable before this
   * one had its turn.
   *
   * @throws RuntimeException the failure, if that is not so
   */
  private void requireAnother(Failed failed, long offset, long length, PathCall call) {
    RuntimeException e = failed.why();
    if (e instanceof BrokenInitiatorException && abandon(failed)) {
      return;
    }
    boolean usable =
        e instanceof NvmeStatusException
            || e instanceof InvalidRequestException
            || e instanceof CommandAbortedException
            || e instanceof StorageException;
    if (!usable) {
      abandon(failed);
    }
    if (e instanceof NvmeStatusException status && status.slba() >= 0) {
      int block = namespace.blockSize();
      throw StorageFailures.of(e, call.source(), status.slba() * block, block);
    }
    throw StorageFailures.of(e, call.source(), offset, length);
  }

  /**
   * The next transfer gets queues of its own; those who use the broken ones come to an end first.
   *
   * @return false if that has to be left to the next one: this thread is in the middle of another
   *     transfer, which asked whether to end
   */
  private boolean abandon(Failed failed) {
    if (service.isShared()) {
      return false;
    }
    service.enterAlone();
    try {
      Initiator broken = failed.by();
      if (broken != null && broken == initiator) {
        initiator = null;
        CloseAll.after(failed.why(), broken::close);
      }
      return true;
    } finally {
      service.leaveAlone();
    }
  }

  /** Runs the commands of one call by an initiator. */
  final class Commands {
    private final Initiator by;
    private final PathCall call;

    Commands(Initiator by, PathCall call) {
      this.by = by;
      this.call = call;
    }

    PathCall call() {
      return call;
    }

    /** Whether a range needs no staging memory. */
    boolean isStraight(Range r) {
      return DirectPath.this.isStraight(r.offset(), r.length(), r.buffer(), r.bufferOffset());
    }

    boolean isReached(DeviceBuffer buffer) {
      return DirectPath.this.isReached(buffer);
    }

    /** Commands to come. */
    TransferPlan.Builder plan(Direction direction) {
      return TransferPlan.builder(direction, namespace, by.maxTransferBytes());
    }

    /** Moves whole blocks between the namespace and buffers of this path's placement. */
    void run(TransferPlan.Builder plan, List<DeviceBuffer> buffers) {
      if (!plan.isEmpty()) {
        call.retried(by.run(plan.build(), buffers, call).retries());
      }
    }
  }

  @Override
  public void takeStaging() {
    Seat<Boolean> seat = service.enter();
    try {
      requireOpen();
      staging.give(staging.take());
      if (pieces != staging) {
        pieces.give(pieces.take());
      }
    } finally {
      service.leave(seat);
    }
  }

  @Override
  public void close() {
    flushing.lock();
    try {
      service.enterAlone();
      try {
        if (!closed) {
          closed = true;
          CloseAll.all(staging, pieces, initiator, cache);
        }
      } finally {
        service.leaveAlone();
      }
    } finally {
      flushing.unlock();
    }
  }
}
