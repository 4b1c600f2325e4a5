package io.gpunvme.tools.example;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.ffi.SharedMemory;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.device.Device;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.GpuModule;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.Direction;
import io.gpunvme.gpu.transfer.Initiator;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.gpu.transfer.TransferListener;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.time.Duration;

/**
 * A kernel decides on the GPU what to read: each thread walks through a table on the SSD whose rows
 * name the rows to read next. The CPU walks through the same table in its own memory and compares.
 */
public final class Gather {
  private static final ValueLayout.OfInt WORD =
      ValueLayout.JAVA_INT.withOrder(ByteOrder.LITTLE_ENDIAN);
  private static final int BLOCK_THREADS = 128;
  private static final int WALK_BYTES = 16;
  private static final int NEIGHBOURS = 8;
  private static final int FIRST_ROW = 0x9E3779B1; // 2654435761, as in the kernel
  private static final Duration LIMIT = Duration.ofSeconds(60);

  private final GatherOptions options;
  private final NvmeController controller;
  private final Namespace namespace;
  private final int blocksPerRow;

  private Gather(GatherOptions options, Device device) {
    this.options = options;
    this.controller = device.controller();
    this.namespace = controller.namespace(1);
    int block = namespace.blockSize();
    if (options.rowBytes() % block != 0 || options.rowBytes() < NEIGHBOURS * WORD.byteSize()) {
      throw new InvalidRequestException(
          "rows of %d bytes are not whole blocks of %d".formatted(options.rowBytes(), block));
    }
    if ((long) options.rows() * options.rowBytes() > namespace.bytes()) {
      throw new InvalidRequestException(
          "%d rows of %d bytes do not fit into a namespace of %d bytes"
              .formatted(options.rows(), options.rowBytes(), namespace.bytes()));
    }
    this.blocksPerRow = options.rowBytes() / block;
  }

  /**
   * Writes the table, lets the GPU walk, checks.
   *
   * @param device opened with {@code allowWrite}; its namespace 1 is overwritten from block 0 on
   * @throws InvalidRequestException if the numbers do not fit each other or the device
   * @throws io.gpunvme.nvme.NvmeException if the SSD fails
   */
  public static GatherReport run(GatherOptions options, Device device, GpuAccelerator gpu) {
    return new Gather(options, device).run(device, gpu);
  }

  private GatherReport run(Device device, GpuAccelerator gpu) {
    long bytes = (long) options.rows() * options.rowBytes();
    try (SharedMemory memory = SharedMemory.allocate("gpunvme-gather", bytes)) {
      MemorySegment table = memory.segment().asSlice(0, bytes);
      fill(table);
      put(table);
      return walk(device, gpu, table);
    }
  }

  private static int mix(int x) {
    int a = (x ^ x >>> 16) * 0x7feb352d;
    int b = (a ^ a >>> 15) * 0x846ca68b;
    return b ^ b >>> 16;
  }

  private void fill(MemorySegment table) {
    long words = table.byteSize() / WORD.byteSize();
    for (long i = 0; i < words; i++) {
      table.setAtIndex(WORD, i, mix((int) i + options.seed()));
    }
  }

  private void put(MemorySegment table) {
    InitiatorOptions cpu = InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST);
    long blocks = (long) options.rows() * blocksPerRow;
    try (Accelerator host = CpuAccelerator.open();
        DeviceBuffer buffer = host.allocate(table.byteSize());
        Initiator initiator = cpu.open(controller, host)) {
      buffer.copyFromHost(table, 0);
      initiator.move(Direction.WRITE, namespace, 0, blocks, buffer, 0, TransferListener.NONE);
    }
  }

  private GatherReport walk(Device device, GpuAccelerator gpu, MemorySegment table) {
    int threads = options.threads();
    long bytes = (long) threads * options.rowBytes();
    try (GpuModule module = GpuModule.resource(gpu, "gather");
        DeviceBuffer data = options.placement().allocate(gpu, bytes);
        DeviceBuffer walks = gpu.allocate((long) threads * WALK_BYTES);
        KernelStorage storage =
            KernelStorage.open(device, gpu, KernelStorageOptions.in(options.placement()))) {
      storage.register(data);
      CudaFunction kernel = module.function("gpunvme_gather");
      CudaStream stream = gpu.context().stream();
      long start = System.nanoTime();
      stream.launch(
          kernel,
          LaunchShape.of(Math.ceilDiv(threads, BLOCK_THREADS), BLOCK_THREADS),
          new KernelArguments()
              .addLong(storage.deviceHandle())
              .addLong(walks.deviceAddress())
              .addInt(threads)
              .addInt(options.hops())
              .addInt(options.rows())
              .addInt(blocksPerRow));
      boolean undisturbed = storage.await(stream::isIdle, LIMIT);
      long nanos = System.nanoTime() - start;
      long reads = check(table, walks);
      if (!undisturbed) {
        throw new IllegalStateException("the kernel was told to stop, but it has all results");
      }
      return new GatherReport(options, gpu.name(), reads, reads * options.rowBytes(), nanos, true);
    }
  }

  /** The same walks on the CPU. Returns how many rows the GPU has read. */
  private long check(MemorySegment table, DeviceBuffer walks) {
    MemorySegment results = MemorySegment.ofArray(new int[options.threads() * WALK_BYTES / 4]);
    walks.copyToHost(0, results);
    long reads = 0;
    for (int t = 0; t < options.threads(); t++) {
      int status = results.getAtIndex(WORD, t * 4L + 3);
      if (status != 0) {
        throw new IllegalStateException(
            "thread %d read: %s".formatted(t, DeviceStatus.describe(status)));
      }
      int sum = 0;
      int row = Integer.remainderUnsigned(t * FIRST_ROW, options.rows());
      for (int hop = 0; hop < options.hops(); hop++) {
        long base = (long) row * options.rowBytes();
        for (int i = 0; i < options.rowBytes(); i += 4) {
          sum += table.get(WORD, base + i);
        }
        int next = table.get(WORD, base + (sum & NEIGHBOURS - 1) * WORD.byteSize());
        row = Integer.remainderUnsigned(next, options.rows());
      }
      if (results.getAtIndex(WORD, t * 4L) != sum || results.getAtIndex(WORD, t * 4L + 1) != row) {
        throw new IllegalStateException("thread " + t + " has another result than the CPU");
      }
      reads += results.getAtIndex(WORD, t * 4L + 2);
    }
    return reads;
  }
}
