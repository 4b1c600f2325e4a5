package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.accel.HostWindow;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.path.Range;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Reads of 4 KiB to GPU memory by {@link GpuStorage}, each by a kernel, from an embedded SSD whose
 * medium is pinned memory; beside a CUDA copy of as many bytes. One in {@value #CHECK_EVERY} is
 * compared, outside of the time. Used by one thread.
 */
final class ShortReadBench implements AutoCloseable {
  private static final String PREFIX = "short.4k.";

  /** The most that a read can be: the copy of its bytes, by a thread that does nothing else. */
  static final String LIMIT = PREFIX + "copy";

  static final String ALONE = PREFIX + "gpu";
  static final String CROWD = ALONE + ".threads.24";
  static final String BESIDE = ALONE + ".beside";

  private static final int LENGTH = 4096;
  private static final int READS = 500;
  private static final int CHECK_EVERY = 50;
  private static final int THREADS = 24;
  private static final long CROWD_NANOS = 300_000_000;
  private static final int LONG_ROUNDS = 8;
  private static final double MICRO = 1e3;

  private final GpuAccelerator accelerator;
  private final BenchDevice device;
  private final HostWindow pinned;
  private final GpuStorage storage;
  private final int workers;
  private final long bytes;

  /**
   * @param bytes of the SSD
   * @param workers threads of the controller
   */
  ShortReadBench(GpuAccelerator accelerator, long bytes, int workers) {
    this.accelerator = accelerator;
    this.workers = workers;
    this.bytes = bytes;
    device = new BenchDevice(bytes, LENGTH, workers);
    try {
      BlockPattern.hashWords(device.medium());
      pinned = accelerator.mapHost(device.medium(), HostMemoryKind.MEMORY);
      storage =
          GpuStorage.over(
              device.controller(),
              accelerator,
              StorageOptions.defaults()
                  .with(InitiatorOptions.defaults().with(InitiatorKind.GPU, Placement.VRAM_DATA)));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, device::close);
      throw e;
    }
  }

  /** The names of all results, the limit first. */
  static List<String> ids() {
    return List.of(LIMIT, ALONE, BESIDE, CROWD);
  }

  /**
   * The median of a read in microseconds; of {@link #CROWD}, reads per second.
   *
   * @throws BenchException if something else arrived than was on the SSD, or the CPU asked for it
   */
  Measurement measure(String id, Repetitions repetitions) {
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("bytes", LENGTH);
    conditions.put("controller_threads", workers);
    if (!id.equals(LIMIT)) {
      try (DeviceBuffer target = accelerator.allocate(LENGTH)) {
        conditions.put("mode", storage.read(0, target, 0, LENGTH).mode());
      }
    }
    long byCpu = device.commandsByCpu();
    double[] samples =
        switch (id) {
          case LIMIT -> repetitions.samples(this::copy);
          case ALONE -> repetitions.samples(() -> median(id, READS));
          case BESIDE -> repetitions.samples(this::besideLong);
          default -> repetitions.samples(() -> crowd(id));
        };
    device.requireNoneByCpu(id, byCpu);
    return Measurement.of(id, id.equals(CROWD) ? "1/s" : "us", samples, conditions);
  }

  private double copy() {
    SplittableRandom random = new SplittableRandom(READS);
    double[] nanos = new double[READS];
    try (CudaStream stream = accelerator.context().stream();
        DeviceBuffer target = accelerator.allocate(LENGTH)) {
      for (int i = 0; i < READS; i++) {
        MemorySegment source = device.medium().asSlice(offset(random), LENGTH);
        long begin = System.nanoTime();
        stream.copyToDeviceAsync(target.deviceAddress(), source);
        stream.synchronize();
        nanos[i] = System.nanoTime() - begin;
      }
    }
    return median(nanos);
  }

  private double median(String id, int reads) {
    SplittableRandom random = new SplittableRandom(reads);
    double[] nanos = new double[reads];
    try (DeviceBuffer target = accelerator.allocate(LENGTH)) {
      for (int i = 0; i < reads; i++) {
        long offset = offset(random);
        long begin = System.nanoTime();
        storage.read(offset, target, 0, LENGTH);
        nanos[i] = System.nanoTime() - begin;
        if (i % CHECK_EVERY == 0) {
          check(id, target, 0, offset);
        }
      }
    }
    return median(nanos);
  }

  private static double median(double[] nanos) {
    Arrays.sort(nanos);
    return nanos[nanos.length / 2] / MICRO;
  }

  /** While a long read is under way all the time. */
  private double besideLong() {
    try (ExecutorService pool = Executors.newSingleThreadExecutor();
        DeviceBuffer large = accelerator.allocate(bytes);
        DeviceBuffer target = accelerator.allocate(LENGTH)) {
      List<Range> all = new ArrayList<>();
      for (int i = 0; i < LONG_ROUNDS; i++) {
        all.add(new Range(0, large, 0, bytes));
      }
      SplittableRandom random = new SplittableRandom(LONG_ROUNDS);
      List<Double> nanos = new ArrayList<>();
      Future<?> longRead = pool.submit(() -> storage.read(all));
      while (!longRead.isDone()) {
        long offset = offset(random);
        long begin = System.nanoTime();
        storage.read(offset, target, 0, LENGTH);
        nanos.add((double) System.nanoTime() - begin);
        if (nanos.size() % CHECK_EVERY == 0) {
          check(BESIDE, target, 0, offset);
        }
      }
      result(longRead);
      // The last one may have ended after the long read.
      nanos.removeLast();
      if (nanos.isEmpty()) {
        throw new BenchException(BESIDE + ": the long read was over before a short one");
      }
      return median(nanos.stream().mapToDouble(Double::doubleValue).toArray());
    }
  }

  private double crowd(String id) {
    // Taking memory waits for kernels: all of it before the first read.
    try (DeviceBuffer memory = accelerator.allocate((long) THREADS * LENGTH);
        ExecutorService pool = Executors.newFixedThreadPool(THREADS)) {
      List<Future<Long>> all = new ArrayList<>();
      long begin = System.nanoTime();
      for (int t = 0; t < THREADS; t++) {
        int seed = t;
        all.add(pool.submit(() -> countUntil(begin + CROWD_NANOS, id, seed, memory)));
      }
      long reads = 0;
      for (Future<Long> one : all) {
        reads += result(one);
      }
      return reads * 1e9 / (System.nanoTime() - begin);
    }
  }

  private long countUntil(long end, String id, int seed, DeviceBuffer memory) {
    SplittableRandom random = new SplittableRandom(seed);
    long at = (long) seed * LENGTH;
    long reads = 0;
    long offset = 0;
    do {
      offset = offset(random);
      storage.read(offset, memory, at, LENGTH);
      reads++;
    } while (System.nanoTime() < end);
    check(id, memory, at, offset);
    return reads;
  }

  private long offset(SplittableRandom random) {
    return random.nextLong(bytes / LENGTH) * LENGTH;
  }

  private static void check(String id, DeviceBuffer target, long at, long offset) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment got = arena.allocate(LENGTH, Long.BYTES);
      target.copyToHost(at, got);
      BlockPattern.requireWords(got, offset, id);
    }
  }

  private static <T> T result(Future<T> future) {
    try {
      return future.get();
    } catch (InterruptedException | ExecutionException e) {
      throw (BenchException) new BenchException("a thread that reads failed: " + e).initCause(e);
    }
  }

  @Override
  public void close() {
    storage.close();
    // The medium goes with the device.
    pinned.close();
    device.close();
  }
}
