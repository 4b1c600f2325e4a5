package io.gpunvme.tools.doctor;

import static io.gpunvme.gpu.queue.DeviceLayout.getInt;
import static io.gpunvme.gpu.queue.DeviceLayout.getLong;

import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.CompletionPlace;
import io.gpunvme.gpu.queue.DeviceStatus;
import io.gpunvme.gpu.queue.GpuModule;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.nvme.ControllerFatalException;
import io.gpunvme.nvme.NvmeStatusException;
import io.gpunvme.nvme.NvmeTimeoutException;
import io.gpunvme.nvme.driver.Namespace;
import io.gpunvme.nvme.driver.NvmeController;
import io.gpunvme.nvme.spec.IoOpcode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongConsumer;

/**
 * Looks whether data that an SSD writes into GPU memory is there once its completion is. A kernel
 * ({@code arrival.cu}) reads the first blocks of a namespace again and again, and looks at their
 * last 16 bytes right after each completion. For one thread.
 */
final class DataArrival {
  /** The longest reads: long ones have more data on its way when the completion follows. */
  static final int MOST_BYTES = 128 << 10;

  private static final int LEAST_BYTES = 4096;

  /** How long a kernel runs: some GPUs end those that take seconds. */
  private static final Duration SLICE = Duration.ofMillis(200);

  /** Its least: the reads that make a count worth telling may take longer than was asked for. */
  private static final Duration SHORT_SLICE = Duration.ofMillis(20);

  private static final int LEAST_READS = 200;

  /** What a kernel may take beside its reads. */
  private static final Duration SPARE = Duration.ofSeconds(10);

  /** Of a queue or a command, as in error log entries. */
  private static final int NOT_KNOWN = 0xFFFF;

  // struct Arrival of the kernel.
  private static final long END_BYTES = 16;
  private static final long READS = 16;
  private static final long LATE = 24;
  private static final long LONGEST = 32;
  private static final long STATUS = 40;
  private static final long MISSING = 44;
  private static final long SIZE = 48;

  private final NvmeController controller;
  private final Namespace namespace;
  private final GpuAccelerator gpu;
  private final byte[] content;

  /**
   * @param content the first bytes of the namespace, {@link #bytes} of them
   */
  DataArrival(NvmeController controller, Namespace namespace, GpuAccelerator gpu, byte[] content) {
    this.controller = controller;
    this.namespace = namespace;
    this.gpu = gpu;
    this.content = content;
  }

  /** Bytes that are read at a time at most: whole blocks of one command. */
  static int bytes(NvmeController controller, Namespace namespace) {
    int block = namespace.blockSize();
    long most = Math.min(controller.maxTransferBytes(), namespace.bytes());
    return (int) Math.max(block, Math.min(most, MOST_BYTES) / block * block);
  }

  /** The lengths that are read: a short one and the longest, or one if they are the same. */
  private List<Integer> lengths() {
    int shortest = Math.min(content.length, Math.max(LEAST_BYTES, namespace.blockSize()));
    return shortest == content.length ? List.of(shortest) : List.of(shortest, content.length);
  }

  /**
   * Reads of each length.
   *
   * @param queues where the queues lie: {@link Placement#HOST}, or a placement whose own choice of
   *     the completion queues' place is looked at
   * @param look for all lengths together; longer if the SSD needs longer for {@value #LEAST_READS}
   *     reads of each
   * @param passed is told the nanoseconds that went by
   * @throws io.gpunvme.nvme.NvmeException if a read fails, or its data never arrives
   */
  List<ArrivalCount> measure(Placement queues, Duration look, LongConsumer passed) {
    boolean host = CompletionPlace.of(queues, true, controller.function()).host();
    boolean used =
        host == CompletionPlace.of(Placement.VRAM_DATA, true, controller.function()).host();
    List<Integer> lengths = lengths();
    List<ArrivalCount> counts = new ArrayList<>();
    KernelStorageOptions options = KernelStorageOptions.in(queues).at(namespace.nsid()).with(0, 32);
    for (int bytes : lengths) {
      try (KernelStorage storage = KernelStorage.over(List.of(controller), gpu, options);
          DeviceBuffer data = gpu.allocate((long) storage.queuePairs() * bytes);
          DeviceBuffer arrivals = gpu.allocate(storage.queuePairs() * SIZE)) {
        storage.register(data);
        long nanos = look.toNanos() / lengths.size();
        counts.add(count(storage, arrivals, bytes, nanos, host, used, passed));
      }
    }
    return counts;
  }

  private ArrivalCount count(
      KernelStorage storage,
      DeviceBuffer arrivals,
      int bytes,
      long nanos,
      boolean host,
      boolean used,
      LongConsumer passed) {
    try (Arena arena = Arena.ofConfined();
        CudaStream stream = gpu.context().stream()) {
      MemorySegment all = arena.allocate(storage.queuePairs() * SIZE, END_BYTES);
      MemorySegment end = MemorySegment.ofArray(content).asSlice(bytes - END_BYTES, END_BYTES);
      for (long at = 0; at < all.byteSize(); at += SIZE) {
        all.asSlice(at, END_BYTES).copyFrom(end);
      }
      arrivals.copyFromHost(all, 0);
      long left = nanos;
      do {
        long slice = Math.clamp(left, SHORT_SLICE.toNanos(), SLICE.toNanos());
        long begin = System.nanoTime();
        read(storage, stream, arrivals, bytes / namespace.blockSize(), slice);
        arrivals.copyToHost(0, all);
        requireSuccess(all);
        long took = System.nanoTime() - begin;
        passed.accept(Math.clamp(left, 0, took));
        left -= took;
      } while (left > 0 || sum(all, READS) < LEAST_READS);
      return new ArrivalCount(host, used, bytes, sum(all, READS), sum(all, LATE), longest(all));
    }
  }

  private void read(
      KernelStorage storage, CudaStream stream, DeviceBuffer arrivals, int blocks, long nanos) {
    stream.launch(
        GpuModule.resource(gpu, "arrival").function("gpunvme_arrival"),
        LaunchShape.of(storage.queuePairs(), 1),
        new KernelArguments()
            .addLong(storage.deviceHandle())
            .addLong(arrivals.deviceAddress())
            .addInt(blocks)
            .addLong(nanos));
    // A kernel that was told to stop says so in its status.
    storage.await(stream::isIdle, SPARE.plusNanos(nanos).plus(controller.options().ioTimeout()));
  }

  private void requireSuccess(MemorySegment all) {
    for (long at = 0; at < all.byteSize(); at += SIZE) {
      int status = getInt(all, at + STATUS);
      String what = "a kernel's read of LBA 0 of " + controller.name() + " into GPU memory: ";
      if (getInt(all, at + MISSING) != 0) {
        throw new NvmeTimeoutException(
            what + "its last 16 bytes did not arrive, though it was completed");
      }
      if (status == 0) {
        continue;
      }
      if (DeviceStatus.fromController(status)) {
        throw new NvmeStatusException(
            status, IoOpcode.READ, NOT_KNOWN, NOT_KNOWN, namespace.nsid(), 0);
      }
      if (controller.troubled()) {
        throw new ControllerFatalException(what + "the SSD is in trouble");
      }
      throw new NvmeTimeoutException(what + DeviceStatus.describe(status));
    }
  }

  private static long sum(MemorySegment all, long field) {
    long sum = 0;
    for (long at = 0; at < all.byteSize(); at += SIZE) {
      sum += getLong(all, at + field);
    }
    return sum;
  }

  private static long longest(MemorySegment all) {
    long longest = 0;
    for (long at = 0; at < all.byteSize(); at += SIZE) {
      longest = Math.max(longest, getLong(all, at + LONGEST));
    }
    return longest;
  }
}
