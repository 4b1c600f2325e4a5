package io.gpunvme.nvme.driver;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.nvme.spec.DsmRange;
import io.gpunvme.nvme.spec.IdentifyController;
import io.gpunvme.nvme.spec.IoOpcode;
import io.gpunvme.nvme.spec.Sqe;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Synchronous block I/O on one namespace over one queue pair.
 *
 * <p>A request of any length is split by MDTS and pipelined at the queue's depth. Commands that
 * fail with a retryable status are repeated ({@link ControllerOptions#retries}); commands that do
 * not complete in time are recovered and repeated. When a method has returned or thrown, the
 * controller no longer touches the buffer. After an exception an unknown part of the request has
 * been done.
 *
 * <p>One thread at a time. Offsets into buffers are multiples of 4 bytes, lengths whole blocks. All
 * methods throw {@link io.gpunvme.nvme.NvmeStatusException} for errors that the controller returns,
 * {@link io.gpunvme.nvme.NvmeTimeoutException} if it does not answer, and {@link
 * InvalidRequestException}, before anything is sent, if the request is not possible.
 */
public final class BlockDevice implements AutoCloseable {
  /** CDW12 of Read, Write, Compare, Write Zeroes: Force Unit Access. */
  private static final int FUA = 1 << 30;

  /** CDW12 of Write Zeroes: Deallocate. */
  private static final int DEAC = 1 << 25;

  private static final long MAX_DSM_BLOCKS = 0xFFFF_FFFFL;

  private final NvmeController controller;
  private final Namespace namespace;
  private final QueuePair queue;
  private final boolean ownsQueue;
  private final BlockTransfer transfer;
  private final MemorySegment sqe = MemorySegment.ofArray(new long[Sqe.SIZE / Long.BYTES]);
  private @Nullable DmaBuffer ranges;

  private BlockDevice(
      NvmeController controller, Namespace namespace, QueuePair queue, boolean ownsQueue) {
    this.controller = controller;
    this.namespace = namespace;
    this.queue = queue;
    this.ownsQueue = ownsQueue;
    this.transfer = new BlockTransfer(controller, queue, namespace);
  }

  /**
   * Opens a namespace over a queue pair of its own, deleted by {@link #close}.
   *
   * @param depth commands in flight at most, 1..{@link NvmeController#maxDepth}
   * @throws InvalidRequestException if the namespace is not usable
   */
  public static BlockDevice open(NvmeController controller, Namespace namespace, int depth) {
    namespace.requireUsable();
    QueuePair queue = controller.createQueuePair(depth);
    return CloseAll.orClose(
        () -> new BlockDevice(controller, namespace, queue, true),
        () -> controller.deleteQueuePair(queue));
  }

  /** Opens a namespace over a queue pair that stays the caller's and has nothing in flight. */
  public static BlockDevice over(NvmeController controller, Namespace namespace, QueuePair queue) {
    namespace.requireUsable();
    return new BlockDevice(controller, namespace, queue, false);
  }

  /** The namespace. */
  public Namespace namespace() {
    return namespace;
  }

  /** The queue pair, for its counters. */
  public QueuePair queue() {
    return queue;
  }

  /** Commands repeated so far. */
  public long retried() {
    return transfer.retried();
  }

  /** The last recovery this device needed, or null. */
  public @Nullable RecoveryOutcome lastRecovery() {
    return transfer.lastRecovery();
  }

  /**
   * Reads blocks (NVM 1.0, 3.2.4).
   *
   * @param slba first block
   * @param blocks how many, at least 1
   * @param data where they go, from {@code offset} on
   */
  public void read(long slba, long blocks, BusRange data, long offset) {
    checkData(slba, blocks, data, offset);
    transfer.run(IoOpcode.READ, 0, slba, blocks, data, offset);
  }

  /**
   * Writes blocks (NVM 1.0, 3.2.6); with a volatile write cache they are durable after {@link
   * #flush}.
   */
  public void write(long slba, long blocks, BusRange data, long offset) {
    write(slba, blocks, data, offset, false);
  }

  /**
   * Writes blocks.
   *
   * @param forceUnitAccess whether they are durable when this returns
   */
  public void write(long slba, long blocks, BusRange data, long offset, boolean forceUnitAccess) {
    controller.requireWritable("Write");
    checkData(slba, blocks, data, offset);
    transfer.run(IoOpcode.WRITE, forceUnitAccess ? FUA : 0, slba, blocks, data, offset);
  }

  /**
   * Compares blocks with a buffer (NVM 1.0, 3.2.1).
   *
   * @throws io.gpunvme.nvme.NvmeStatusException with Compare Failure if they differ
   */
  public void compare(long slba, long blocks, BusRange data, long offset) {
    requireCommand(IdentifyController.ONCS_COMPARE, IoOpcode.COMPARE);
    checkData(slba, blocks, data, offset);
    transfer.run(IoOpcode.COMPARE, 0, slba, blocks, data, offset);
  }

  /** Has the controller check that blocks can be read (NVM 1.0, 3.2.5). */
  public void verify(long slba, long blocks) {
    requireCommand(IdentifyController.ONCS_VERIFY, IoOpcode.VERIFY);
    namespace.requireRange(slba, blocks);
    transfer.run(IoOpcode.VERIFY, 0, slba, blocks, null, 0);
  }

  /**
   * Sets blocks to zero (NVM 1.0, 3.2.8).
   *
   * @param deallocate whether the controller may release them
   */
  public void writeZeroes(long slba, long blocks, boolean deallocate) {
    controller.requireWritable("Write Zeroes");
    requireCommand(IdentifyController.ONCS_WRITE_ZEROES, IoOpcode.WRITE_ZEROES);
    namespace.requireRange(slba, blocks);
    transfer.run(IoOpcode.WRITE_ZEROES, deallocate ? DEAC : 0, slba, blocks, null, 0);
  }

  /** Makes reads of blocks fail until they are written again (NVM 1.0, 3.2.7). */
  public void writeUncorrectable(long slba, long blocks) {
    controller.requireWritable("Write Uncorrectable");
    requireCommand(IdentifyController.ONCS_WRITE_UNCORRECTABLE, IoOpcode.WRITE_UNCORRECTABLE);
    namespace.requireRange(slba, blocks);
    transfer.run(IoOpcode.WRITE_UNCORRECTABLE, 0, slba, blocks, null, 0);
  }

  /** Tells the controller that blocks are not needed any more (TRIM; NVM 1.0, 3.2.3). */
  public void trim(long slba, long blocks) {
    controller.requireWritable("Dataset Management");
    requireCommand(IdentifyController.ONCS_DATASET_MANAGEMENT, IoOpcode.DATASET_MANAGEMENT);
    namespace.requireRange(slba, blocks);
    BusRange list = rangeList();
    for (long done = 0; done < blocks; ) {
      long part = Math.min(blocks - done, MAX_DSM_BLOCKS);
      DsmRange.put(list.memory(), 0, 0, (int) part, slba + done);
      Sqe.clear(sqe, 0);
      Sqe.opcode(sqe, 0, IoOpcode.DATASET_MANAGEMENT);
      Sqe.nsid(sqe, 0, namespace.nsid());
      Sqe.cdw11(sqe, 0, DsmRange.AD);
      transfer.run(sqe, list, DsmRange.SIZE);
      done += part;
    }
  }

  private BusRange rangeList() {
    DmaBuffer list = ranges;
    if (list == null) {
      list = DmaBuffer.allocate(controller.function(), DsmRange.SIZE);
      ranges = list;
    }
    return list.range();
  }

  /** Makes everything written so far durable (NVM 1.0, 3.2.2). Allowed on read-only controllers. */
  public void flush() {
    Sqe.clear(sqe, 0);
    Sqe.opcode(sqe, 0, IoOpcode.FLUSH);
    Sqe.nsid(sqe, 0, namespace.nsid());
    transfer.run(sqe, null, 0);
  }

  private void checkData(long slba, long blocks, BusRange data, long offset) {
    namespace.requireRange(slba, blocks);
    long bytes = blocks << namespace.blockShift();
    if (offset < 0 || (offset & 3) != 0 || bytes > data.size() - offset) {
      throw new InvalidRequestException(
          "%d bytes at offset %d: the offset must be a multiple of 4, and the buffer has %d bytes"
              .formatted(bytes, offset, data.size()));
    }
  }

  private void requireCommand(int oncsBit, int opcode) {
    if ((controller.identify().getInt(IdentifyController.ONCS) & oncsBit) == 0) {
      throw new InvalidRequestException(
          "%s does not support %s (ONCS %04Xh)"
              .formatted(
                  controller.name(),
                  IoOpcode.name(opcode),
                  controller.identify().getInt(IdentifyController.ONCS)));
    }
  }

  /** Deletes the queue pair, if it is this device's own. Idempotent. */
  @Override
  public void close() {
    if (ranges != null) {
      ranges.close();
    }
    if (ownsQueue) {
      controller.deleteQueuePair(queue);
    }
  }
}
