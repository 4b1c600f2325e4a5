package io.gpunvme.gpu.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import io.gpunvme.gpu.queue.DeviceLayout;
import io.gpunvme.gpu.queue.DeviceLayout.TransferArgs;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.RunningKernel;
import io.gpunvme.gpu.queue.TransferKernel;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.IntUnaryOperator;

/**
 * Plays the transfer kernel: gives each command the status that the script has for it in this
 * launch. What it is given must be host memory. Safe for all threads, one of which launches.
 */
final class ScriptedKernel implements TransferKernel {
  /**
   * A launch as it was asked for.
   *
   * @param queues address of its queues
   * @param warps how many
   * @param commands in their order
   */
  record Launch(long queues, int warps, List<Integer> commands) {}

  /** For each launch: the status of a command, by its index. */
  private final List<IntUnaryOperator> scripts = new ArrayList<>();

  private final List<Launch> launches = new ArrayList<>();

  /** Commands of the longest plan whose retries are launched. */
  private final int longest;

  /** Commands that a launch takes at most. */
  private int most = Integer.MAX_VALUE;

  private volatile BooleanSupplier over = () -> true;
  private boolean closed;

  ScriptedKernel(int longest) {
    this.longest = longest;
  }

  /** What the next launch that has no script does. */
  synchronized void add(IntUnaryOperator statuses) {
    scripts.add(statuses);
  }

  synchronized void takeAtMost(int commands) {
    most = commands;
  }

  /** When launches end from now on, those that run included. */
  void endWhen(BooleanSupplier condition) {
    over = condition;
  }

  synchronized List<Launch> launches() {
    return List.copyOf(launches);
  }

  /** For each launch: the commands it was given. */
  List<List<Integer>> given() {
    return launches().stream().map(Launch::commands).toList();
  }

  synchronized boolean isClosed() {
    return closed;
  }

  @Override
  public synchronized RunningKernel start(MemorySegment args, int blockShift, int queuePairs) {
    int commands = DeviceLayout.getInt(args, TransferArgs.COMMANDS);
    MemorySegment cursor = array(args, TransferArgs.CURSOR, 1);
    if (cursor == null) {
      assertThat(queuePairs).as("warps that share no cursor").isEqualTo(1);
    } else {
      int base = DeviceLayout.getInt(args, TransferArgs.BASE);
      assertThat(DeviceLayout.getInt(cursor, 0)).isEqualTo(base);
      // As when warps looked for more and found nothing.
      DeviceLayout.setInt(cursor, 0, base + (commands > most ? most : commands + 3));
    }
    List<Integer> taken = carryOut(args, commands, cursor == null);
    long queues = DeviceLayout.getLong(args, TransferArgs.QUEUES);
    launches.add(new Launch(queues, queuePairs, taken));
    return () -> over.getAsBoolean();
  }

  private List<Integer> carryOut(MemorySegment args, int commands, boolean alone) {
    IntUnaryOperator script = scripts.get(launches.size());
    int all = Math.max(longest, commands);
    MemorySegment order = array(args, TransferArgs.ORDER, commands);
    MemorySegment status = array(args, TransferArgs.STATUSES, all);
    MemorySegment blocks = array(args, TransferArgs.BLOCKS, all);
    MemorySegment latencies = array(args, TransferArgs.LATENCIES, all);
    MemorySegment moved = array(args, TransferArgs.MOVED, 2);
    List<Integer> list = new ArrayList<>();
    for (int i = 0; i < commands; i++) {
      int command = order == null ? i : DeviceLayout.getInt(order, 4L * i);
      list.add(command);
      if (alone) {
        assertThat(DeviceLayout.getInt(status, 4L * command)).isEqualTo(DeviceStatus.PENDING);
      }
      if (i >= most) {
        continue;
      }
      int outcome = script.applyAsInt(command);
      DeviceLayout.setInt(status, 4L * command, outcome);
      DeviceLayout.setInt(latencies, 4L * command, 1000 + command);
      if (outcome == 0 && moved != null) {
        // The opcode is above the blocks.
        int count = DeviceLayout.getInt(blocks, 4L * command) & 0xFF_FFFF;
        long sum = DeviceLayout.getLong(moved, 0) + count;
        DeviceLayout.setLong(moved, 0, sum);
      }
    }
    return list;
  }

  private static MemorySegment array(MemorySegment args, long field, int ints) {
    long address = DeviceLayout.getLong(args, field);
    return address == 0 ? null : MemorySegment.ofAddress(address).reinterpret(4L * ints);
  }

  @Override
  public synchronized void close() {
    closed = true;
  }
}
