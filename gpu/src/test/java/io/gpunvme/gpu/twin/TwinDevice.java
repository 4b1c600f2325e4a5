package io.gpunvme.gpu.twin;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.queue.BufferRegistration;
import io.gpunvme.gpu.queue.DeviceLayout;
import io.gpunvme.gpu.queue.DeviceLayout.Namespace;
import io.gpunvme.gpu.queue.DeviceQueue;
import io.gpunvme.gpu.queue.DeviceQueueOptions;
import io.gpunvme.gpu.queue.DeviceQueues;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.twin.TwinJob.Outcome;
import io.gpunvme.nvme.driver.BlockDevice;
import io.gpunvme.nvme.driver.ControllerOptions;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.memory.DmaBuffer;
import io.gpunvme.sim.NamespaceConfig;
import io.gpunvme.sim.SimConfig;
import io.gpunvme.sim.SimulatedController;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** The embedded controller, queues at it, and threads of the CPU twin that use them. */
final class TwinDevice implements AutoCloseable {
  static final int BLOCK = 512;

  /** Blocks that each thread has for itself. */
  static final int BLOCKS = 4096;

  /** Blocks of one operation at most. */
  static final int CHUNK_BLOCKS = 24;

  /** Blocks of one command at most; longer operations take several. */
  static final int MAX_BLOCKS = 16;

  /** On a machine that is busy with much else, too. */
  private static final long NO_RUN_TAKES_AS_LONG = 150_000;

  /** Null if it is another one. */
  final SimulatedController sim;

  final NvmeController controller;
  final DeviceQueues queues;
  final MemorySegment ns;

  private final TwinLibrary library;
  private final TwinDriver driver;
  private final CpuAccelerator cpu = CpuAccelerator.open();
  private final Arena arena = Arena.ofShared();
  private final BufferRegistration registration;
  private final MemorySegment memory;
  private final List<TwinJob> jobs = new ArrayList<>();
  private final List<Thread> started = new ArrayList<>();

  /**
   * An embedded controller, full of zeroes.
   *
   * @param driver what runs on the queues
   * @param threads one for each queue pair, or a multiple of that on shared queues; a block counts
   *     as one
   * @param timeoutMillis of each command
   * @param seed of the controller
   */
  TwinDevice(
      TwinLibrary library,
      TwinDriver driver,
      int queuePairs,
      int depth,
      int threads,
      int chunks,
      long timeoutMillis,
      long seed) {
    this(
        library,
        driver,
        open(
            SimConfig.builder()
                .namespace(NamespaceConfig.ram(bytes(threads), BLOCK))
                .maxTransfer((long) MAX_BLOCKS * BLOCK)
                .mqes(4095)
                .latencyNanos(0)
                .outOfOrder(true)
                .workers(1)
                .seed(seed)
                .build(),
            timeoutMillis),
        queuePairs,
        depth,
        threads,
        chunks);
  }

  private static NvmeController open(SimConfig config, long timeoutMillis) {
    return NvmeController.open(SimulatedController.create(config), options(timeoutMillis));
  }

  /** What a controller has to be opened with. */
  static ControllerOptions options(long timeoutMillis) {
    return ControllerOptions.builder()
        .allowWrite(true)
        .ioTimeout(Duration.ofMillis(timeoutMillis))
        .recoveryTimeout(Duration.ofMillis(500))
        .build();
  }

  /** Bytes of the namespace that so many threads use, from its beginning on. */
  static long bytes(int threads) {
    return (long) threads * BLOCKS * BLOCK;
  }

  /**
   * Any controller whose first namespace has blocks of {@link #BLOCK} bytes.
   *
   * @param controller closed with this; as much as {@link #bytes} says is zeroed
   */
  TwinDevice(
      TwinLibrary library,
      TwinDriver driver,
      NvmeController controller,
      int queuePairs,
      int depth,
      int threads,
      int chunks) {
    this.library = library;
    this.driver = driver;
    this.controller = controller;
    sim = controller.function() instanceof SimulatedController embedded ? embedded : null;
    if (sim == null) {
      zero(bytes(threads));
    }
    queues =
        new DeviceQueues(
            controller,
            cpu,
            new DeviceQueueOptions(Placement.HOST, driver.shared(), queuePairs, depth, false));
    long part = (long) chunks * CHUNK_BLOCKS * BLOCK;
    DeviceBuffer buffer = cpu.allocate(threads * part);
    memory = buffer.segment();
    registration = BufferRegistration.create(controller, cpu, buffer);
    ns = namespace(arena, threads * BLOCKS, MAX_BLOCKS, queuePairs, queues.deviceAddress());
    for (int i = 0; i < threads; i++) {
      jobs.add(
          new TwinJob(
              arena,
              ns.address(),
              queues.queues().get(i % queuePairs).deviceAddress(),
              registration.deviceAddress(),
              i * part,
              (long) i * BLOCKS,
              BLOCKS,
              BLOCK,
              chunks,
              CHUNK_BLOCKS));
    }
  }

  private void zero(long bytes) {
    try (BlockDevice device = BlockDevice.open(controller, controller.namespace(1), 4);
        DmaBuffer zeroes = DmaBuffer.allocate(controller.function(), BLOCKS * BLOCK)) {
      for (long at = 0; at < bytes; at += zeroes.size()) {
        device.write(at / BLOCK, BLOCKS, zeroes.range(), 0);
      }
    }
  }

  static MemorySegment namespace(
      Arena arena, long blocks, int maxBlocks, int queueCount, long queues) {
    MemorySegment ns = arena.allocate(Namespace.SIZE, Namespace.SIZE);
    DeviceLayout.setLong(ns, Namespace.BLOCKS, blocks);
    DeviceLayout.setInt(ns, Namespace.NSID, 1);
    DeviceLayout.setInt(ns, Namespace.BLOCK_SHIFT, Integer.numberOfTrailingZeros(BLOCK));
    DeviceLayout.setInt(ns, Namespace.MAX_BLOCKS, maxBlocks);
    DeviceLayout.setInt(ns, Namespace.QUEUE_COUNT, queueCount);
    DeviceLayout.setLong(ns, Namespace.QUEUES, queues);
    return ns;
  }

  DeviceQueue queue() {
    return queues.queues().getFirst();
  }

  long buffer() {
    return registration.deviceAddress();
  }

  /** How long the next commands of the only queue have, whatever the controller was opened with. */
  void setTimeout(long millis) {
    MemorySegment struct =
        MemorySegment.ofAddress(queue().deviceAddress()).reinterpret(DeviceLayout.Queue.SIZE);
    DeviceLayout.setLong(
        struct, DeviceLayout.Queue.TIMEOUT_NS, Duration.ofMillis(millis).toNanos());
  }

  /** The memory of the buffer. */
  MemorySegment memory() {
    return memory;
  }

  /** Starts all threads. */
  Running start(long seed, int operations, boolean single) {
    return start(driver, seed, operations, single);
  }

  private Running start(TwinDriver by, long seed, int operations, boolean single) {
    List<Thread> threads = new ArrayList<>();
    for (int i = 0; i < jobs.size(); i++) {
      long job = jobs.get(i).prepare(seed + i, operations, single);
      threads.add(Thread.ofPlatform().daemon().start(() -> by.run(library, job)));
    }
    started.addAll(threads);
    return new Running(threads);
  }

  /** Runs all threads to their end; returns what became of all operations. */
  Outcome run(long seed, int operations, boolean single) {
    return start(seed, operations, single).end();
  }

  /** The same with another driver, which has to be one for the same layout of queues. */
  Outcome runBy(TwinDriver other, long seed, int operations) {
    return start(other, seed, operations, true).end();
  }

  /** Threads at work. */
  final class Running {
    private final List<Thread> threads;

    Running(List<Thread> threads) {
      this.threads = threads;
    }

    boolean over() {
      return threads.stream().noneMatch(Thread::isAlive);
    }

    Outcome end() {
      await();
      started.removeAll(threads);
      Outcome sum = Outcome.NONE;
      for (TwinJob job : jobs) {
        sum = sum.plus(job.outcome());
      }
      return sum;
    }

    private void await() {
      for (Thread thread : threads) {
        try {
          if (!thread.join(Duration.ofMillis(NO_RUN_TAKES_AS_LONG))) {
            throw new AssertionError("a thread hangs: " + queues.counters() + ", " + stats());
          }
        } catch (InterruptedException e) {
          throw new AssertionError(e);
        }
      }
    }
  }

  private Object stats() {
    return sim == null ? controller : sim.stats();
  }

  /** Makes the only queue usable again. */
  boolean recover() {
    boolean recovered = queues.recover(queue()).recovered();
    jobs.forEach(TwinJob::recovered);
    return recovered;
  }

  @Override
  public void close() {
    // After a failed test threads may still be at work in this memory.
    queues.stop(true);
    new Running(List.copyOf(started)).await();
    queues.close();
    registration.close();
    controller.close();
    cpu.close();
    arena.close();
  }
}
