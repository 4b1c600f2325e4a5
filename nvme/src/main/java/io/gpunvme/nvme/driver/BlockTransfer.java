package io.gpunvme.nvme.driver;

import io.gpunvme.nvme.InvalidRequestException;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.nvme.memory.BusRange;
import io.gpunvme.nvme.spec.Status;
import java.lang.foreign.MemorySegment;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Runs one request at a time over a queue pair: cut into chunks no longer than MDTS, as many in
 * flight as the queue is deep, each repeated if the controller allows it, the queue recovered when
 * a chunk expires. Returns or throws only when nothing is outstanding any more.
 *
 * <p>One thread. Nothing is allocated unless something goes wrong: a chunk's number and its count
 * of attempts travel in the command's user data.
 */
final class BlockTransfer implements CompletionSink {
  private static final long LOOK_NANOS = TimeUnit.MILLISECONDS.toNanos(1);
  private static final int MAX_BLOCKS = 65536;
  private static final int ATTEMPT_SHIFT = 56;
  private static final long CHUNK_MASK = (1L << ATTEMPT_SHIFT) - 1;

  private final NvmeController controller;
  private final QueuePair queue;
  private final int nsid;
  private final int blockShift;
  private final int chunkBlocks;
  private final int retries;
  private final Backoff backoff = new Backoff();

  /** Chunks to be repeated, a ring; each was in flight, so there are never more than slots. */
  private final long[] again;

  private int againHead;
  private int againCount;

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
  private int outstanding;
  private @Nullable NvmeException failure;
  private @Nullable RecoveryOutcome lastRecovery;
  private long retried;

  BlockTransfer(NvmeController controller, QueuePair queue, Namespace namespace) {
    this.controller = controller;
    this.queue = queue;
    this.nsid = namespace.nsid();
    this.blockShift = namespace.blockShift();
    this.chunkBlocks = (int) Math.min(MAX_BLOCKS, queue.maxTransferBytes() >> blockShift);
    if (chunkBlocks == 0) {
      throw new InvalidRequestException(
          "blocks of %d bytes are longer than the longest transfer, %d bytes"
              .formatted(namespace.blockSize(), queue.maxTransferBytes()));
    }
    this.retries = controller.options().retries();
    this.again = new long[queue.depth()];
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
    return retried;
  }

  /** The last time the ladder was climbed, or null. */
  @Nullable RecoveryOutcome lastRecovery() {
    return lastRecovery;
  }

  private void drive(long count) {
    if (queue.state() == QueuePair.State.CLOSED) {
      throw new InvalidRequestException("queue pair " + queue.qid() + " is closed");
    }
    chunks = count;
    nextChunk = 0;
    againCount = 0;
    failure = null;
    backoff.reset();
    long looked = System.nanoTime();
    while (true) {
      submitWhatFits();
      queue.ring();
      if (outstanding == 0 && (failure != null || (nextChunk == chunks && againCount == 0))) {
        break;
      }
      int before = outstanding;
      queue.poll(this);
      if (outstanding != before) {
        backoff.reset();
        continue;
      }
      // Stale completions are no progress: a flood of them must not keep time from being looked at.
      long now = System.nanoTime();
      if (queue.state() != QueuePair.State.READY) {
        recover();
      } else if (now - looked >= LOOK_NANOS) {
        looked = now;
        if (queue.expired(now) >= 0 || controller.troubled()) {
          recover();
        }
      }
      backoff.pause();
    }
    data = null;
    if (failure != null) {
      throw failure;
    }
  }

  private void submitWhatFits() {
    while (failure == null && queue.hasRoom()) {
      if (againCount > 0) {
        long ticket = again[againHead];
        againHead = (againHead + 1) % again.length;
        againCount--;
        submit(ticket);
      } else if (nextChunk < chunks) {
        submit(nextChunk++);
      } else {
        return;
      }
    }
  }

  private void submit(long ticket) {
    long first = (ticket & CHUNK_MASK) * chunkBlocks;
    int count = (int) Math.min(chunkBlocks, blocks - first);
    int slot;
    try {
      slot =
          prepared != null
              ? queue.submit(prepared, data, 0, preparedBytes, ticket)
              : queue.submitIo(
                  opcode,
                  nsid,
                  slba + first,
                  count,
                  flags,
                  data,
                  dataOffset + (first << blockShift),
                  (long) count << blockShift,
                  ticket);
    } catch (NvmeException e) {
      failure = e;
      return;
    }
    if (slot < 0) {
      repeat(ticket);
    } else {
      outstanding++;
    }
  }

  private void repeat(long ticket) {
    again[(againHead + againCount) % again.length] = ticket;
    againCount++;
  }

  @Override
  public void completed(QueuePair pair, int slot, int status) {
    outstanding--;
    if (Status.ok(status) || failure != null) {
      return;
    }
    long ticket = pair.userData(slot);
    int attempt = (int) (ticket >>> ATTEMPT_SHIFT);
    if (CompletionPolicy.mayRetry(status) && attempt < retries) {
      retried++;
      repeat(ticket + (1L << ATTEMPT_SHIFT));
    } else {
      failure = CompletionPolicy.failure(pair, slot, status, attempt + 1);
    }
  }

  private void recover() {
    RecoveryOutcome outcome = controller.recover(queue, this);
    lastRecovery = outcome;
    if (!outcome.recovered()) {
      failure = Objects.requireNonNull(outcome.failure());
      outstanding = 0;
    }
  }
}
