package io.gpunvme.tools.bench;

import static io.gpunvme.gpu.queue.DeviceLayout.getLong;
import static io.gpunvme.gpu.queue.DeviceLayout.setInt;
import static io.gpunvme.gpu.queue.DeviceLayout.setLong;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.BufferRegistration;
import io.gpunvme.gpu.queue.DeviceQueueOptions;
import io.gpunvme.gpu.queue.DeviceQueues;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.QueueCounters;
import io.gpunvme.tools.bench.BenchLayout.RandomArgs;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * Random reads of single blocks from an embedded SSD by a kernel that looks at every block when it
 * arrives. For one thread.
 */
final class RandomBench implements AutoCloseable {
  /** In {@code reads.cu}. */
  static final String KERNEL = "gpunvme_bench_random";

  private static final int WARP = 32;
  private static final int SEED = 42;
  private static final double NANOS_PER_SECOND = 1e9;

  private final Accelerator accelerator;
  private final BenchKernels kernels;
  private final BenchDevice device;
  private final int blockSize;
  private final int workers;

  /**
   * @param kernels of {@code reads.cu}; stay the caller's
   * @param bytes of the SSD
   * @param workers threads of the controller
   */
  RandomBench(
      Accelerator accelerator, BenchKernels kernels, long bytes, int blockSize, int workers) {
    this(accelerator, kernels, new BenchDevice(bytes, blockSize, workers), blockSize, workers);
    BlockPattern.stampBlocks(device.medium(), blockSize);
  }

  private RandomBench(
      Accelerator accelerator,
      BenchKernels kernels,
      BenchDevice device,
      int blockSize,
      int workers) {
    this.accelerator = accelerator;
    this.kernels = kernels;
    this.device = device;
    this.blockSize = blockSize;
    this.workers = workers;
  }

  /** The same with the SSD in another process; it has no {@link #ceiling}. */
  static RandomBench served(
      Accelerator accelerator, BenchKernels kernels, long bytes, int blockSize, int workers) {
    BenchDevice device = BenchDevice.served(bytes, blockSize, workers);
    return new RandomBench(accelerator, kernels, device, blockSize, workers);
  }

  /**
   * Commands per second.
   *
   * @param queuePairs one warp each; they take the commands from one count, so that a controller's
   *     thread that is slow for a while does fewer and the others more
   * @param commands in all, in each repetition; up to 2^31
   * @throws BenchException if a command failed or brought something else than it should
   */
  Measurement measure(
      String id,
      Placement placement,
      int queuePairs,
      int depth,
      long commands,
      Repetitions repetitions) {
    DeviceQueueOptions options = DeviceQueueOptions.exclusive(placement, queuePairs, depth);
    try (DeviceQueues queues = new DeviceQueues(device.controller(), accelerator, options);
        DeviceBuffer data =
            placement.allocate(accelerator, (long) queuePairs * queues.depth() * blockSize);
        BufferRegistration buffer =
            BufferRegistration.create(device.controller(), accelerator, data);
        Job job = new Job(id, queues, buffer, commands)) {
      double[] samples = repetitions.samples(job::once);
      Map<String, Object> conditions = new LinkedHashMap<>();
      conditions.put("placement", placement.toString());
      conditions.put("block_bytes", blockSize);
      conditions.put("namespace_bytes", device.namespace().bytes());
      conditions.put("queue_pairs", queuePairs);
      conditions.put("depth", queues.depth());
      conditions.put("commands", commands);
      conditions.put("controller_threads", workers);
      conditions.put("doorbells_per_command", job.doorbells);
      conditions.put("registers", kernels.registers(KERNEL));
      return Measurement.of(id, "commands/s", samples, conditions);
    }
  }

  /**
   * The most that copying threads, as many as the controller has, can do with this SSD's medium.
   *
   * @param queuePairs for as many places as {@link #measure} has with them
   */
  Measurement ceiling(
      String id, int queuePairs, int depth, long commands, Repetitions repetitions) {
    long bytes = (long) queuePairs * depth * blockSize;
    try (DeviceBuffer data = Placement.HOST.allocate(accelerator, bytes)) {
      return new CopyCeiling(device.medium(), data, blockSize, workers, commands)
          .measure(id, repetitions);
    }
  }

  /** One measurement's repetitions. */
  private final class Job implements AutoCloseable {
    private final String id;
    private final DeviceQueues queues;
    private final int count;
    private final long commands;
    private final int ring;
    private final long counterBytes;
    private final DeviceBuffer memory;
    private final MemorySegment args;
    private final Arena arena = Arena.ofShared();
    private int repetition;
    private double doorbells;

    Job(String id, DeviceQueues queues, BufferRegistration buffer, long commands) {
      this.id = id;
      this.queues = queues;
      this.commands = commands;
      count = queues.queues().size();
      // As Queue::slot_bits: one entry at least two.
      ring = Math.max(2, Integer.highestOneBit(2 * queues.depth() - 1));
      counterBytes = (2L * count + 1) * Long.BYTES;
      memory = accelerator.allocate(counterBytes + (long) count * ring * Integer.BYTES);
      args = arena.allocate(RandomArgs.SIZE, Long.BYTES);
      setLong(args, RandomArgs.QUEUES, queues.deviceAddress());
      setLong(args, RandomArgs.BUFFER, buffer.deviceAddress());
      setLong(args, RandomArgs.DONE, memory.deviceAddress());
      setLong(args, RandomArgs.FAILED, memory.deviceAddress() + (long) count * Long.BYTES);
      setLong(args, RandomArgs.NEXT, memory.deviceAddress() + 2L * count * Long.BYTES);
      setLong(args, RandomArgs.PLACES, memory.deviceAddress() + counterBytes);
      setLong(args, RandomArgs.BLOCKS, device.namespace().blocks());
      setInt(args, RandomArgs.COMMANDS, Math.toIntExact(commands));
      setInt(args, RandomArgs.NSID, device.namespace().nsid());
      setInt(args, RandomArgs.BLOCK_SHIFT, Integer.numberOfTrailingZeros(blockSize));
    }

    private double once() {
      clear();
      setInt(args, RandomArgs.SEED, SEED + repetition++);
      QueueCounters before = queues.counters();
      long byCpu = device.commandsByCpu();
      LaunchedKernel run = kernels.start(KERNEL, count, WARP, args);
      KernelDeadline.await(run, id, () -> queues.stop(true));
      QueueCounters counters = queues.counters().minus(before);
      check(counters);
      device.requireNoneByCpu(id, byCpu);
      double total = commands;
      doorbells = Math.max(doorbells, (counters.sqDoorbells() + counters.cqDoorbells()) / total);
      return total * NANOS_PER_SECOND / run.nanos();
    }

    /** No counts, and all places of the buffer free. */
    private void clear() {
      try (Arena here = Arena.ofConfined()) {
        MemorySegment all = here.allocate(counterBytes + (long) count * ring * Integer.BYTES, 8);
        for (int q = 0; q < count; q++) {
          for (int i = 0; i < queues.depth(); i++) {
            long at = counterBytes + ((long) q * ring + i) * Integer.BYTES;
            setInt(all, at, q * queues.depth() + i);
          }
        }
        memory.copyFromHost(all, 0);
      }
    }

    private void check(QueueCounters counters) {
      long right = 0;
      long wrong = 0;
      try (Arena here = Arena.ofConfined()) {
        MemorySegment all = here.allocate(counterBytes, Long.BYTES);
        memory.copyToHost(0, all);
        for (int q = 0; q < count; q++) {
          right += getLong(all, (long) q * Long.BYTES);
          wrong += getLong(all, (long) (count + q) * Long.BYTES);
        }
      }
      long trouble = counters.timeouts() + counters.late() + counters.stale() + counters.unknown();
      if (right != commands || wrong != 0 || trouble + counters.malformed() != 0) {
        throw new BenchException(
            "%s: of %d commands, %d brought their block and %d failed or brought a wrong one; %s; %s"
                .formatted(id, commands, right, wrong, counters, queues.takeErrors().records()));
      }
    }

    @Override
    public void close() {
      memory.close();
      arena.close();
    }
  }

  @Override
  public void close() {
    device.close();
  }
}
