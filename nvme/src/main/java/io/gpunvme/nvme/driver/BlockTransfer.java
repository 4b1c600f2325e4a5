package io.gpunvme.nvme.driver;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.nvme.memory.BusRange;
import java.lang.foreign.MemorySegment;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Runs one request at a time over a queue pair, cut into chunks no longer than MDTS. Returns or
 * throws only when nothing is outstanding any more. One thread; nothing is allocated unless
 * something goes wrong.
 */
final class BlockTransfer implements CommandLoop.Source {
  private static final int MAX_BLOCKS = 65536;

  private final QueuePair queue;
  private final int nsid;
  private final int blockShift;
  private final int chunkBlocks;
  private final CommandLoop loop;

  private int opcode;
  private int flags;
  private long slba;
  private long blocks;
  private @Nullable BusRange data;
  private long dataOffset;
  private @Nullable MemorySegment prepared;
  private long preparedBytes;

  private long chunks;
  private long nextChunk;
  private @Nullable Throwable failure;

  BlockTransfer(NvmeController controller, QueuePair queue, Namespace namespace) {
    this.queue = queue;
    this.nsid = namespace.nsid();
    this.blockShift = namespace.blockShift();
    this.chunkBlocks = (int) Math.min(MAX_BLOCKS, queue.maxTransferBytes() >> blockShift);
    if (chunkBlocks == 0) {
      throw new InvalidRequestException(
          "blocks of %d bytes are longer than the longest transfer, %d bytes"
              .formatted(namespace.blockSize(), queue.maxTransferBytes()));
    }
    this.loop = new CommandLoop(controller, List.of(queue), controller.options().retries());
  }

  /**
   * A command over a range of blocks; arguments have been checked.
   *
   * @param data null for commands that move none
   */
  void run(
      int opcode,
      int cdw12Flags,
      long slba,
      long blocks,
      @Nullable BusRange data,
      long dataOffset) {
    this.opcode = opcode;
    this.flags = cdw12Flags;
    this.slba = slba;
    this.blocks = blocks;
    this.data = data;
    this.dataOffset = dataOffset;
    this.prepared = null;
    drive(Math.ceilDiv(blocks, chunkBlocks));
  }

  /** A single command prepared by the caller. */
  void run(MemorySegment sqe, @Nullable BusRange data, long bytes) {
    this.prepared = sqe;
    this.data = data;
    this.preparedBytes = bytes;
    drive(1);
  }

  /** Commands repeated so far. */
  long retried() {
    return loop.retried();
  }

  /** The last time the ladder was climbed, or null. */
  @Nullable RecoveryOutcome lastRecovery() {
    return loop.lastRecovery();
  }

  private void drive(long count) {
    if (queue.state() == QueuePair.State.CLOSED) {
      throw new InvalidRequestException("queue pair " + queue.qid() + " is closed");
    }
    chunks = count;
    nextChunk = 0;
    failure = null;
    loop.run(this);
    data = null;
    switch (failure) {
      case null -> {}
      case RuntimeException e -> throw e;
      case Error e -> throw e;
      default -> throw new IllegalStateException(failure);
    }
  }

  // ---- the loop's source: a ticket is the number of a chunk

  @Override
  public long take() {
    return nextChunk < chunks ? nextChunk++ : CommandLoop.NONE;
  }

  @Override
  public boolean hasMore() {
    return nextChunk < chunks;
  }

  @Override
  public int submit(QueuePair pair, long ticket, long userData) {
    if (prepared != null) {
      return pair.submit(prepared, data, 0, preparedBytes, userData);
    }
    long first = ticket * chunkBlocks;
    int count = (int) Math.min(chunkBlocks, blocks - first);
    return pair.submitIo(
        opcode,
        nsid,
        slba + first,
        count,
        flags,
        data,
        dataOffset + (first << blockShift),
        (long) count << blockShift,
        userData);
  }

  @Override
  public void done(QueuePair pair, int slot, long ticket) {}

  @Override
  public void fail(Throwable e) {
    if (failure == null) {
      failure = e;
    }
  }

  @Override
  public boolean stopped() {
    return failure != null;
  }

  @Override
  public void look() {}
}
