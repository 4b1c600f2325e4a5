package io.gpunvme.gpu.transfer;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.DeviceLayout;
import io.gpunvme.gpu.queue.DeviceLayout.TransferArgs;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.QueueEnd;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A plan's arrays: what the kernel writes is in the accelerator's memory, what it reads there too,
 * or in pinned memory if it is short. A copy to the accelerator waits behind whatever embedded
 * controllers copy there, which takes longer than reading a few commands over PCIe. A warp that is
 * {@link #load alone} leaves what it writes in pinned memory as well, for the same reason. Both
 * pieces of memory have the same layout and are kept from plan to plan: taking and freeing them
 * costs more than a short transfer. For one thread.
 */
final class TransferArrays implements AutoCloseable {
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final ValueLayout.OfLong LONG =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final long CURSOR = 0;
  private static final long CURSOR_BYTES = 64;

  /** Commands of a plan that is read where it is. */
  private static final int SHORT = 1024;

  /** What is longer is given back after the transfer. */
  private static final long LONGEST_KEPT = 64 << 20;

  private static final long LEAST = 64 << 10;

  private final Accelerator accelerator;
  private @Nullable DeviceBuffer device;
  private @Nullable DeviceBuffer pinned;
  private @Nullable TransferPlan plan;

  // Offsets. What the kernel writes comes first, what it reads after that.
  private long statuses;
  private long started;
  private long slba;
  private long offset;
  private long blocks;
  private long targets;
  private long order;

  /** Where a warp that is alone leaves its queue. */
  private long ended;

  /** Whether one warp carries it out, and leaves everything in pinned memory. */
  private boolean alone;

  /** Commands that were seen to be over. */
  private int over;

  /** Where the descriptions of several buffers are listed. */
  private long buffers;

  /** Device address of the first buffer's description. */
  private long first;

  /** The cursor is never set back: this is what it was before the launch. */
  private int base;

  /** What it was when the last kernel ended. */
  private int reached;

  TransferArrays(Accelerator accelerator) {
    this.accelerator = accelerator;
  }

  /**
   * Takes a plan in place of the one before.
   *
   * @param descriptions device address of each buffer's {@code struct Buffer}
   * @param alone whether one warp carries it out, which needs no copies; only for a few commands
   */
  void load(TransferPlan next, long[] descriptions, boolean alone) {
    plan = next;
    this.alone = alone;
    long n = next.commands();
    statuses = CURSOR + CURSOR_BYTES;
    started = statuses + n * Integer.BYTES;
    slba = started + n * Integer.BYTES;
    offset = slba + n * Long.BYTES;
    blocks = offset + n * Long.BYTES;
    targets = blocks + n * Integer.BYTES;
    long others = next.hasTargets() ? n * Integer.BYTES : 0;
    buffers = Math.ceilDiv(targets + others, Long.BYTES) * Long.BYTES;
    order = buffers + (others > 0 ? (long) descriptions.length * Long.BYTES : 0);
    first = descriptions[0];
    ended = Math.ceilDiv(order + n * Integer.BYTES, Long.BYTES) * Long.BYTES;
    reserve(ended + QueueEnd.BYTES);
    // Whole arrays: a million commands' words one by one take longer than their transfer.
    MemorySegment all = pinned().segment();
    next.copyTo(all, slba, offset, blocks, targets);
    if (others > 0) {
      MemorySegment.copy(descriptions, 0, all, LONG, buffers, descriptions.length);
    }
    upload(slba, order - slba);
    begin();
  }

  /** Before a kernel. */
  private void begin() {
    base = reached;
    if (alone) {
      // What it never submits stays pending: it counts nothing.
      MemorySegment all = pinned().segment();
      for (long at = statuses; at < started; at += Integer.BYTES) {
        all.set(INT, at, DeviceStatus.PENDING);
      }
      over = 0;
      QueueEnd.clear(end());
    }
  }

  private MemorySegment end() {
    return pinned().segment().asSlice(ended, QueueEnd.BYTES);
  }

  /** Whether a warp that is alone has nothing left to do but to end. */
  boolean isLeft() {
    return alone && QueueEnd.isLeft(end());
  }

  /** The first queue as a warp that was alone has left it; null if it left nothing. */
  @Nullable QueueEnd left(int depth) {
    return alone ? QueueEnd.read(end(), depth) : null;
  }

  /** Whether a warp that is alone has seen more commands end since the last call. */
  boolean advanced() {
    MemorySegment all = pinned().segment();
    int before = over;
    over = 0;
    for (long i = 0; i < plan().commands(); i++) {
      if (all.get(INT, statuses + i * Integer.BYTES) != DeviceStatus.PENDING) {
        over++;
      }
    }
    return over > before;
  }

  private void upload(long at, long bytes) {
    if (!isShort()) {
      device().copyFromHost(pinned().segment().asSlice(at, bytes), at);
    }
  }

  private boolean isShort() {
    return plan().commands() <= SHORT;
  }

  private void reserve(long bytes) {
    DeviceBuffer there = pinned;
    if (there != null && there.size() >= bytes) {
      return;
    }
    close();
    // The pinned memory comes last: where it is, both are.
    long capacity = Math.max(LEAST, Long.highestOneBit(bytes - 1) << 1);
    device = accelerator.allocate(capacity);
    reached = 0;
    pinned = accelerator.allocatePinned(capacity);
  }

  /** The transfer is over; gives back what is too long to be kept. */
  void unload() {
    DeviceBuffer there = device;
    if (there != null && there.size() > LONGEST_KEPT) {
      close();
    }
  }

  private TransferPlan plan() {
    return present(plan);
  }

  private DeviceBuffer device() {
    return present(device);
  }

  private DeviceBuffer pinned() {
    return present(pinned);
  }

  private static <T> T present(@Nullable T part) {
    return Objects.requireNonNull(part, "no plan was loaded");
  }

  /** Has the next kernel carry out these commands, in this order. */
  void repeat(int[] again) {
    MemorySegment.copy(again, 0, pinned().segment(), INT, order, again.length);
    upload(order, (long) again.length * Integer.BYTES);
    begin();
  }

  /** Fetches what the kernel has written; it is over. */
  void collect() {
    if (alone) {
      return;
    }
    MemorySegment results = pinned().segment().asSlice(CURSOR, slba);
    device().copyToHost(CURSOR, results);
    reached = results.get(INT, CURSOR);
  }

  /**
   * How many commands the kernel may have taken, the first ones in their order: the others were not
   * submitted, and have no status.
   *
   * @param commands how many there were
   */
  int taken(int commands) {
    if (alone) {
      return commands;
    }
    // Warps that find nothing left count on.
    return (int) Math.min(commands, Integer.toUnsignedLong(reached - base));
  }

  /** The statuses of all commands; only those that were taken have one. */
  int[] statuses() {
    return ints(statuses);
  }

  /** Of commands that are over: ns from submission to completion, modulo 2^32. */
  int[] latencies() {
    return ints(started);
  }

  private int[] ints(long at) {
    long bytes = (long) plan().commands() * Integer.BYTES;
    return pinned().segment().asSlice(at, bytes).toArray(INT);
  }

  /**
   * What the kernel is given.
   *
   * @param queues address of the first {@code struct Queue}
   * @param moved address of the word that counts blocks; a warp that is alone does not count
   * @param commands how many to carry out
   * @param ordered whether they are those that {@link #repeat} named, or the first ones
   */
  void describe(MemorySegment args, long queues, long moved, int commands, boolean ordered) {
    long results = device().deviceAddress();
    long inputs = isShort() ? pinned().deviceAddress() : results;
    DeviceLayout.setLong(args, TransferArgs.QUEUES, queues);
    DeviceLayout.setLong(args, TransferArgs.BUFFER, first);
    boolean several = plan().hasTargets();
    DeviceLayout.setLong(args, TransferArgs.BUFFERS, several ? inputs + buffers : 0);
    DeviceLayout.setLong(args, TransferArgs.TARGETS, several ? inputs + targets : 0);
    DeviceLayout.setLong(args, TransferArgs.SLBA, inputs + slba);
    DeviceLayout.setLong(args, TransferArgs.OFFSET, inputs + offset);
    DeviceLayout.setLong(args, TransferArgs.BLOCKS, inputs + blocks);
    DeviceLayout.setLong(args, TransferArgs.ORDER, ordered ? inputs + order : 0);
    long told = alone ? pinned().deviceAddress() : results;
    DeviceLayout.setLong(args, TransferArgs.STATUSES, told + statuses);
    DeviceLayout.setLong(args, TransferArgs.STARTED, results + started);
    DeviceLayout.setLong(args, TransferArgs.LATENCIES, told + started);
    DeviceLayout.setLong(args, TransferArgs.CURSOR, alone ? 0 : results + CURSOR);
    DeviceLayout.setLong(args, TransferArgs.MOVED, alone ? 0 : moved);
    DeviceLayout.setLong(args, TransferArgs.ENDED, alone ? told + ended : 0);
    DeviceLayout.setInt(args, TransferArgs.BASE, base);
    DeviceLayout.setInt(args, TransferArgs.COMMANDS, commands);
    DeviceLayout.setInt(args, TransferArgs.NSID, plan().nsid());
  }

  /** No kernel uses them any more. */
  @Override
  public void close() {
    DeviceBuffer first = device;
    DeviceBuffer second = pinned;
    device = null;
    pinned = null;
    CloseAll.all(first, second);
  }
}
