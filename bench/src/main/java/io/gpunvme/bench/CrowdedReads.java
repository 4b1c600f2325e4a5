package io.gpunvme.bench;

import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.path.Range;
import io.gpunvme.tools.bench.BenchException;
import io.gpunvme.tools.bench.BlockPattern;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntToDoubleFunction;

/**
 * Short reads of one storage that others use, too. The storage has the pattern of {@link
 * BlockPattern#hash}.
 */
final class CrowdedReads {
  static final int LENGTH = 4096;
  static final long LONG_BYTES = 4L << 30;
  static final List<Integer> THREADS = List.of(1, 2, 4, 16);

  private static final long RATE_NANOS = 200_000_000;
  private static final int CHECK_EVERY = 64;

  private final GpuStorage storage;
  private final CpuAccelerator accelerator;
  private final long bytes;

  CrowdedReads(GpuStorage storage, CpuAccelerator accelerator, long bytes) {
    this.storage = storage;
    this.accelerator = accelerator;
    this.bytes = bytes;
  }

  /** Reads per second of so many threads, each with one read at a time. */
  IntToDoubleFunction rate(String id, int threads) {
    return seed -> {
      try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
        List<Future<Long>> all = new ArrayList<>();
        long begin = System.nanoTime();
        long end = begin + RATE_NANOS;
        for (int t = 0; t < threads; t++) {
          long own = (long) seed * threads + t;
          all.add(pool.submit(() -> countUntil(end, id, own)));
        }
        long reads = 0;
        for (Future<Long> one : all) {
          reads += result(one);
        }
        return reads * 1e9 / (System.nanoTime() - begin);
      }
    };
  }

  private long countUntil(long end, String id, long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    long reads = 0;
    try (DeviceBuffer buffer = accelerator.allocate(LENGTH)) {
      do {
        long offset = offset(random);
        storage.read(offset, buffer, 0, LENGTH);
        if (reads++ % CHECK_EVERY == 0) {
          check(buffer, offset, id);
        }
      } while (System.nanoTime() < end);
    }
    return reads;
  }

  /** The median of the short reads, ns, that begin and end while a long one is under way. */
  double besideLongRead(int seed) {
    SplittableRandom random = new SplittableRandom(seed);
    List<Long> nanos = new ArrayList<>();
    try (ExecutorService pool = Executors.newSingleThreadExecutor();
        DeviceBuffer large = accelerator.allocate(LONG_BYTES);
        DeviceBuffer buffer = accelerator.allocate(LENGTH)) {
      List<Range> ranges = new ArrayList<>();
      for (long at = 0; at < LONG_BYTES; at += bytes) {
        ranges.add(new Range(0, large, at, bytes));
      }
      Future<?> longRead = pool.submit(() -> storage.read(ranges));
      while (!longRead.isDone()) {
        long offset = offset(random);
        long begin = System.nanoTime();
        storage.read(offset, buffer, 0, LENGTH);
        nanos.add(System.nanoTime() - begin);
        check(buffer, offset, "small.beside.4k");
      }
      result(longRead);
    }
    // The last one may have ended after the long read.
    long[] sorted = nanos.stream().limit(nanos.size() - 1L).mapToLong(Long::longValue).toArray();
    if (sorted.length == 0) {
      throw new BenchException("small.beside.4k: the long read was over before a short one");
    }
    Arrays.sort(sorted);
    return sorted[sorted.length / 2];
  }

  private long offset(SplittableRandom random) {
    return random.nextLong(bytes / LENGTH) * LENGTH;
  }

  private static void check(DeviceBuffer buffer, long offset, String id) {
    BlockPattern.requireWords(buffer.segment().asSlice(0, LENGTH), offset, id);
  }

  private static <T> T result(Future<T> future) {
    try {
      return future.get();
    } catch (InterruptedException | ExecutionException e) {
      throw (BenchException) new BenchException("a thread that reads failed: " + e).initCause(e);
    }
  }
}
