package io.gpunvme.core.transfer;

import io.gpunvme.core.accel.Accelerator;
import io.gpunvme.core.accel.DeviceBuffer;
import io.gpunvme.core.gpu.DeviceLayout;
import io.gpunvme.core.gpu.DeviceLayout.TransferArgs;
import io.gpunvme.core.gpu.DeviceStatus;
import io.gpunvme.nvme.spec.IoOpcode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;

/** A plan's arrays in the accelerator's memory, one after the other. */
final class TransferArrays implements AutoCloseable {
  private static final ValueLayout.OfInt INT =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final long CURSOR_BYTES = 64;

  private final TransferPlan plan;
  private final DeviceBuffer memory;
  private final long slba;
  private final long offset;
  private final long blocks;
  private final long order;
  private final long statuses;
  private final long started;
  private final long cursor;

  /** Uploads the plan; every command is pending. */
  TransferArrays(Accelerator accelerator, TransferPlan plan) {
    this.plan = plan;
    long n = plan.commands();
    slba = 0;
    offset = slba + n * Long.BYTES;
    blocks = offset + n * Long.BYTES;
    order = blocks + n * Integer.BYTES;
    statuses = order + n * Integer.BYTES;
    started = statuses + n * Integer.BYTES;
    cursor = Math.ceilDiv(started + n * Integer.BYTES, CURSOR_BYTES) * CURSOR_BYTES;
    memory = accelerator.allocate(cursor + CURSOR_BYTES);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(memory.size(), Long.BYTES);
      // Whole arrays: a million commands' words one by one take longer than their transfer.
      plan.copyTo(all, slba, offset, blocks);
      int[] pending = new int[plan.commands()];
      Arrays.fill(pending, DeviceStatus.PENDING);
      MemorySegment.copy(pending, 0, all, INT, statuses, pending.length);
      memory.copyFromHost(all, 0);
    } catch (RuntimeException e) {
      memory.close();
      throw e;
    }
  }

  /** Makes commands pending again and uploads their order. */
  void repeat(int[] again) {
    int[] all = statuses();
    for (int command : again) {
      all[command] = DeviceStatus.PENDING;
    }
    memory.copyFromHost(little(again), order);
    memory.copyFromHost(little(all), statuses);
    try (Arena arena = Arena.ofConfined()) {
      memory.copyFromHost(arena.allocate(CURSOR_BYTES), cursor);
    }
  }

  private static MemorySegment little(int[] values) {
    MemorySegment bytes = Arena.ofAuto().allocate(INT, Math.max(1, values.length));
    MemorySegment.copy(values, 0, bytes, INT, 0, values.length);
    return bytes.asSlice(0, (long) values.length * Integer.BYTES);
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
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment bytes = arena.allocate(INT, Math.max(1, plan.commands()));
      memory.copyToHost(at, bytes.asSlice(0, (long) plan.commands() * Integer.BYTES));
      return bytes.toArray(INT);
    }
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
    long base = memory.deviceAddress();
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
    boolean read = plan.direction() == Direction.READ;
    DeviceLayout.setInt(args, TransferArgs.OPCODE, read ? IoOpcode.READ : IoOpcode.WRITE);
    DeviceLayout.setInt(args, TransferArgs.NSID, plan.nsid());
  }

  /** No kernel uses them any more. */
  @Override
  public void close() {
    memory.close();
  }
}
