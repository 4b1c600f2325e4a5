package io.gpunvme.tools.bench;

import static io.gpunvme.gpu.queue.DeviceLayout.getInt;
import static io.gpunvme.gpu.queue.DeviceLayout.getLong;
import static io.gpunvme.gpu.queue.DeviceLayout.setInt;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;

/** Where a kernel of {@link QueueBench} leaves its counts and latencies, and counts its blocks. */
final class KernelOutput implements AutoCloseable {
  private final int warps;
  private final long countBytes;
  private final int latencyCount;
  private final int blocks;
  private final DeviceBuffer memory;

  KernelOutput(Accelerator accelerator, QueueCase c) {
    warps = c.warps();
    countBytes = 2L * warps * Long.BYTES;
    latencyCount = c.kernel().latency() ? c.commands() : 0;
    blocks = c.callingBlocks();
    memory = accelerator.allocate(bytes());
  }

  private long bytes() {
    return callersAt() + Integer.BYTES;
  }

  private long callersAt() {
    return countBytes + (long) latencyCount * Integer.BYTES;
  }

  long done() {
    return memory.deviceAddress();
  }

  long failed() {
    return memory.deviceAddress() + (long) warps * Long.BYTES;
  }

  long latencyTable() {
    return memory.deviceAddress() + countBytes;
  }

  /** How many blocks still call. */
  long callers() {
    return memory.deviceAddress() + callersAt();
  }

  /** Before each launch: nothing is counted, and no block has left. */
  void clear() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment fresh = arena.allocate(bytes(), Long.BYTES);
      setInt(fresh, callersAt(), blocks);
      memory.copyFromHost(fresh, 0);
    }
  }

  long sumOfDone() {
    return sum(0);
  }

  long sumOfFailed() {
    return sum(warps);
  }

  private long sum(int first) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment counts = arena.allocate(countBytes, Long.BYTES);
      memory.copyToHost(0, counts);
      long sum = 0;
      for (int i = 0; i < warps; i++) {
        sum += getLong(counts, (long) (first + i) * Long.BYTES);
      }
      return sum;
    }
  }

  int[] latencies() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment table = arena.allocate((long) latencyCount * Integer.BYTES, Long.BYTES);
      memory.copyToHost(countBytes, table);
      int[] values = new int[latencyCount];
      Arrays.setAll(values, i -> getInt(table, (long) i * Integer.BYTES));
      return values;
    }
  }

  @Override
  public void close() {
    memory.close();
  }
}
