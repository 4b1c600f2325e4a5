package io.gpunvme.core.transfer;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.core.gpu.DeviceLayout;
import io.gpunvme.core.gpu.DeviceLayout.TransferArgs;
import io.gpunvme.core.gpu.DeviceStatus;
import io.gpunvme.nvme.spec.IoOpcode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.Objects;
import org.jspecify.annotations.Nullable;

/**
 * A plan's arrays in the accelerator's memory, one after the other, and in pinned memory on their
 * way there. Both are kept from plan to plan: taking and freeing them costs more than a short
 * transfer. For one thread.
 */
final class TransferArrays implements AutoCloseable {
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final long CURSOR_BYTES = 64;

  /** What is longer is given back after the transfer. */
  private static final long LONGEST_KEPT = 64 << 20;

  private static final long LEAST = 64 << 10;

  private final Accelerator accelerator;
  private @Nullable DeviceBuffer device;
  private @Nullable DeviceBuffer pinned;
  private @Nullable TransferPlan plan;
  private long slba;
  private long offset;
  private long blocks;
  private long order;
  private long statuses;
  private long started;
  private long cursor;

  TransferArrays(Accelerator accelerator) {
    this.accelerator = accelerator;
  }

  /** Uploads a plan in place of the one before; every command is pending. */
  void load(TransferPlan next) {
    plan = next;
    long n = next.commands();
    slba = 0;
    offset = slba + n * Long.BYTES;
    blocks = offset + n * Long.BYTES;
    order = blocks + n * Integer.BYTES;
    statuses = order + n * Integer.BYTES;
    started = statuses + n * Integer.BYTES;
    cursor = Math.ceilDiv(started + n * Integer.BYTES, CURSOR_BYTES) * CURSOR_BYTES;
    long bytes = cursor + CURSOR_BYTES;
    reserve(bytes);
    MemorySegment all = pinned().segment().asSlice(0, bytes);
    // Whole arrays: a million commands' words one by one take longer than their transfer.
    next.copyTo(all, slba, offset, blocks);
    int[] pending = new int[next.commands()];
    Arrays.fill(pending, DeviceStatus.PENDING);
    MemorySegment.copy(pending, 0, all, INT, statuses, pending.length);
    all.asSlice(started).fill((byte) 0);
    device().copyFromHost(all, 0);
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

  /** Makes commands pending again and uploads their order. */
  void repeat(int[] again) {
    int[] all = statuses();
    for (int command : again) {
      all[command] = DeviceStatus.PENDING;
    }
    MemorySegment staging = pinned().segment();
    MemorySegment.copy(again, 0, staging, INT, order, again.length);
    MemorySegment.copy(all, 0, staging, INT, statuses, all.length);
    device().copyFromHost(staging.asSlice(order, started - order), order);
    staging.asSlice(cursor, CURSOR_BYTES).fill((byte) 0);
    device().copyFromHost(staging.asSlice(cursor, CURSOR_BYTES), cursor);
  }

  /** The statuses of all commands. */
  int[] statuses() {
    return ints(statuses);
  }

  /** Of commands that are over: ns from submission to completion, modulo 2^32. */
  int[] latencies() {
    return ints(started);
  }

  private int[] ints(long at) {
    MemorySegment bytes = pinned().segment().asSlice(at, (long) plan().commands() * Integer.BYTES);
    device().copyToHost(at, bytes);
    return bytes.toArray(INT);
  }

  /**
   * What the kernel is given.
   *
   * @param queues address of the first {@code struct Queue}
   * @param buffer address of the {@code struct Buffer}
   * @param moved address of the word that counts blocks
   * @param commands how many to carry out
   * @param ordered whether they are those that {@link #repeat} named, or the first ones
   */
  void describe(
      MemorySegment args, long queues, long buffer, long moved, int commands, boolean ordered) {
    long base = device().deviceAddress();
    DeviceLayout.setLong(args, TransferArgs.QUEUES, queues);
    DeviceLayout.setLong(args, TransferArgs.BUFFER, buffer);
    DeviceLayout.setLong(args, TransferArgs.SLBA, base + slba);
    DeviceLayout.setLong(args, TransferArgs.OFFSET, base + offset);
    DeviceLayout.setLong(args, TransferArgs.BLOCKS, base + blocks);
    DeviceLayout.setLong(args, TransferArgs.ORDER, ordered ? base + order : 0);
    DeviceLayout.setLong(args, TransferArgs.STATUSES, base + statuses);
    DeviceLayout.setLong(args, TransferArgs.STARTED, base + started);
    DeviceLayout.setLong(args, TransferArgs.CURSOR, base + cursor);
    DeviceLayout.setLong(args, TransferArgs.MOVED, moved);
    DeviceLayout.setInt(args, TransferArgs.COMMANDS, commands);
    boolean read = plan().direction() == Direction.READ;
    DeviceLayout.setInt(args, TransferArgs.OPCODE, read ? IoOpcode.READ : IoOpcode.WRITE);
    DeviceLayout.setInt(args, TransferArgs.NSID, plan().nsid());
  }

  /** No kernel uses them any more. */
  @Override
  public void close() {
    DeviceBuffer first = device;
    DeviceBuffer second = pinned;
    device = null;
    pinned = null;
    try {
      if (first != null) {
        first.close();
      }
    } finally {
      if (second != null) {
        second.close();
      }
    }
  }
}
