package io.gpunvme.gpu.transfer;

import io.gpunvme.nvme.driver.CommandLoop;
import io.gpunvme.nvme.driver.QueuePair;
import io.gpunvme.nvme.memory.BusRange;
import java.util.Objects;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * A few commands that one thread carries out by one lane. Each lane has one of these, which is used
 * again and again: a transfer allocates nothing. Begun, filled, run and ended by the thread that
 * has the lane.
 */
final class ShortTransfer extends EarlyEnd implements CommandLoop.Source {
  /** A transfer of no more than this is short. */
  static final int COMMANDS = 8;

  static final long BYTES = 512 << 10;

  /** What is shorter is not cut for the sake of several queues. */
  private static final int LEAST_PART = 16 << 10;

  private final CommandLoop loop;
  private final long[] slba = new long[COMMANDS];
  private final int[] blocks = new int[COMMANDS];
  private final int[] opcodes = new int[COMMANDS];
  private final @Nullable BusRange[] target = new BusRange[COMMANDS];
  private final long[] targetOffset = new long[COMMANDS];
  private TransferListener listener = TransferListener.NONE;
  private @Nullable Histogram latencies;
  private int nsid;
  private int blockSize;
  private int count;
  private int next;
  private int done;
  private long retriedBefore;

  ShortTransfer(CommandLoop loop) {
    this.loop = loop;
  }

  /** Whether such a transfer is short. */
  static boolean holds(long commands, long bytes) {
    return commands <= COMMANDS && bytes <= BYTES;
  }

  /** Blocks of each command of a run that several queues are to carry out. */
  static long part(long blocks, int block) {
    return Math.max(Math.ceilDiv(blocks, COMMANDS), Math.max(1, LEAST_PART / block));
  }

  /** Starts anew, without commands. */
  void begin(int namespace, int block, TransferListener told) {
    restart();
    nsid = namespace;
    blockSize = block;
    listener = told;
    latencies = told.latencies();
    count = 0;
    next = 0;
    done = 0;
    retriedBefore = loop.retried();
  }

  /** Adds a command. */
  void add(int opcode, long firstBlock, int length, BusRange buffer, long offset) {
    slba[count] = firstBlock;
    blocks[count] = length;
    opcodes[count] = opcode;
    target[count] = buffer;
    targetOffset[count] = offset;
    count++;
  }

  /** Adds a run of blocks, in commands of at most {@code most} blocks. */
  void addRun(int opcode, long firstBlock, long length, long most, BusRange buffer, long offset) {
    for (long at = 0; at < length; at += most) {
      int n = (int) Math.min(most, length - at);
      add(opcode, firstBlock + at, n, buffer, offset + at * blockSize);
    }
  }

  /**
   * Carries the commands out.
   *
   * @throws io.gpunvme.nvme.NvmeException the first failure
   * @throws IllegalStateException if bytes are missing though nothing failed
   */
  void run() {
    loop.run(this);
    throwIfFailed();
    if (done != count) {
      throw new IllegalStateException(
          "a transfer of %d commands ended after %d without an error".formatted(count, done));
    }
  }

  /** Commands repeated since it began. */
  long retries() {
    return loop.retried() - retriedBefore;
  }

  /** The listener's histogram. */
  Histogram latencies() {
    return Objects.requireNonNull(latencies);
  }

  /** Lets go of what belongs to others. */
  void end() {
    listener = TransferListener.NONE;
    latencies = null;
    for (int i = 0; i < count; i++) {
      target[i] = null;
    }
  }

  @Override
  TransferListener listener() {
    return listener;
  }

  // ---- the loop's source: a ticket is a command's place in the arrays

  @Override
  public long take() {
    return next < count ? next++ : CommandLoop.NONE;
  }

  @Override
  public boolean hasMore() {
    return next < count;
  }

  @Override
  public int submit(QueuePair queue, long ticket, long userData) {
    int command = (int) ticket;
    BusRange buffer = target[command];
    return queue.submitIo(
        opcodes[command],
        nsid,
        slba[command],
        blocks[command],
        0,
        buffer,
        targetOffset[command],
        (long) blocks[command] * blockSize,
        userData);
  }

  @Override
  public void done(QueuePair queue, int slot, long ticket) {
    int command = (int) ticket;
    long nanos = Math.min(TransferListener.LONGEST_NANOS, queue.latencyNanos(slot));
    done++;
    latencies().recordValue(nanos);
    completed(command, nanos);
    moved((long) blocks[command] * blockSize);
  }

  @Override
  public boolean stopped() {
    return failed();
  }

  @Override
  public void look() {
    if (Thread.currentThread().isInterrupted()) {
      cancel();
    }
    cancelIfAsked();
  }
}
