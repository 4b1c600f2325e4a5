package io.gpunvme.tools.rows;

import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.DeviceRows;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.PageCache;
import io.gpunvme.gpu.queue.PageCacheCounters;
import io.gpunvme.gpu.queue.PageCacheOptions;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.path.Range;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.jspecify.annotations.Nullable;

/**
 * Gathers batches of rows of a matrix that is on SSDs, as training does that samples features or
 * embeddings: by kernels through a page cache, or by the CPU. For one thread.
 */
public final class RowBench {
  private static final int CHECKED = 4096;
  private static final int CHUNK = 16 << 20;
  private static final Duration FLUSH_LIMIT = Duration.ofMinutes(10);

  private final GpuStorage storage;
  private final RowOptions options;
  private final long rows;
  private final Random random = new Random(1);

  private RowBench(GpuStorage storage, RowOptions options) {
    this.storage = storage;
    this.options = options;
    rows = storage.size() / options.rowBytes();
    if (rows == 0) {
      throw new InvalidRequestException(
          "%s has %d bytes, and so no row of %d"
              .formatted(storage.address(), storage.size(), options.rowBytes()));
    }
  }

  /** Moves one batch. */
  private interface Mover {
    /**
     * Gathers the rows, and writes them back if that is wanted; returns when it is done.
     *
     * @param ids of rows
     */
    void move(long[] ids);
  }

  /**
   * Has kernels of a GPU gather.
   *
   * @param storage on the accelerator, opened for writing if rows are updated; stays the caller's
   * @param listener told after each batch, and after the one that is not counted
   * @throws io.gpunvme.gpu.queue.RowsFailedException if a row could not be read or written
   * @throws IllegalStateException if a row is not what the SSD has
   */
  public static RowReport byGpu(
      GpuStorage storage, GpuAccelerator gpu, RowOptions options, Runnable listener) {
    RowBench bench = new RowBench(storage, options);
    long batchBytes = options.rowBytes() * options.batch();
    try (KernelStorage kernels =
            storage.forKernels(
                KernelStorageOptions.in(options.placement())
                    .with(options.queues(), options.depth()));
        PageCache cache =
            kernels.cache(PageCacheOptions.of(options.cacheBytes(), options.pageBytes()));
        DeviceRows matrix =
            storage.rowsForKernels(cache, 0, bench.rows, options.rowBytes(), options.update());
        DeviceBuffer named = gpu.allocate((long) options.batch() * Long.BYTES);
        DeviceBuffer target = gpu.allocate(batchBytes);
        CudaStream stream = gpu.betweenKernels(() -> gpu.context().stream())) {
      Mover mover =
          ids -> {
            named.copyFromHost(MemorySegment.ofArray(ids), 0);
            matrix.gather(stream, named.deviceAddress(), ids.length, target.deviceAddress());
            if (options.update()) {
              matrix.update(stream, named.deviceAddress(), ids.length, target.deviceAddress());
            }
            matrix.synchronize();
          };
      return bench.run(gpu, "GPU", mover, target, cache, listener);
    }
  }

  /**
   * Has the CPU read the rows to an accelerator's memory, as {@link #byGpu}, without a cache of
   * ours.
   */
  public static RowReport byCpu(
      GpuStorage storage, Accelerator accelerator, RowOptions options, Runnable listener) {
    RowBench bench = new RowBench(storage, options);
    try (DeviceBuffer target = accelerator.allocate(options.rowBytes() * options.batch())) {
      Mover mover =
          ids -> {
            storage.read(bench.ranges(ids, target));
            if (options.update()) {
              // A row that is named twice would be written twice at once.
              Map<Long, Range> once = new LinkedHashMap<>();
              bench.ranges(ids, target).forEach(range -> once.put(range.offset(), range));
              storage.write(List.copyOf(once.values()));
            }
          };
      return bench.run(accelerator, "CPU", mover, target, null, listener);
    }
  }

  /**
   * Fills a storage that nobody else has, so that no two rows are the same.
   *
   * @param accelerator the storage's
   */
  public static void fill(GpuStorage storage, Accelerator accelerator) {
    byte[] bytes = new byte[CHUNK];
    Random random = new Random(2);
    try (DeviceBuffer chunk = accelerator.allocatePinned(CHUNK)) {
      for (long at = 0; at < storage.size(); at += CHUNK) {
        random.nextBytes(bytes);
        chunk.copyFromHost(MemorySegment.ofArray(bytes), 0);
        storage.write(at, chunk, 0, Math.min(CHUNK, storage.size() - at));
      }
    }
  }

  private List<Range> ranges(long[] ids, DeviceBuffer target) {
    long bytes = options.rowBytes();
    List<Range> all = new ArrayList<>(ids.length);
    for (int i = 0; i < ids.length; i++) {
      all.add(new Range(ids[i] * bytes, target, i * bytes, bytes));
    }
    return all;
  }

  private RowReport run(
      Accelerator accelerator,
      String initiator,
      Mover mover,
      DeviceBuffer target,
      @Nullable PageCache cache,
      Runnable listener) {
    long[] ids = new long[options.batch()];
    long[] nanos = new long[options.batches()];
    PageCacheCounters before = null;
    for (int i = -1; i < nanos.length; i++) {
      fill(ids);
      long begin = System.nanoTime();
      mover.move(ids);
      if (i >= 0) {
        nanos[i] = System.nanoTime() - begin;
      } else if (cache != null) {
        before = cache.counters();
      }
      listener.run();
    }
    PageCacheCounters counters =
        cache == null || before == null ? null : cache.counters().since(before);
    long flushNanos = options.update() ? flush(cache) : 0;
    int checked = check(accelerator, ids, target);
    Arrays.sort(nanos);
    return new RowReport(
        accelerator.name(),
        initiator,
        rows,
        nanos[nanos.length / 2],
        nanos[0],
        nanos[nanos.length - 1],
        flushNanos,
        checked,
        counters);
  }

  private void fill(long[] ids) {
    for (int i = 0; i < ids.length; i++) {
      double u = random.nextDouble();
      double place = options.skew() == 1 ? u : Math.pow(u, options.skew());
      ids[i] = Math.min(rows - 1, (long) (place * rows));
    }
  }

  private long flush(@Nullable PageCache cache) {
    long begin = System.nanoTime();
    if (cache == null) {
      storage.flush();
    } else {
      cache.flush(FLUSH_LIMIT);
    }
    return System.nanoTime() - begin;
  }

  /** Compares the last batch with what the SSD has; returns how many rows. */
  private int check(Accelerator accelerator, long[] ids, DeviceBuffer target) {
    int count = Math.min(CHECKED, ids.length);
    int bytes = Math.toIntExact(options.rowBytes());
    byte[] got = new byte[bytes];
    byte[] there = new byte[bytes];
    try (DeviceBuffer one = accelerator.allocatePinned(bytes)) {
      for (int i = 0; i < count; i++) {
        // Some of all parts of the batch.
        int k = (int) ((long) i * ids.length / count);
        storage.read(ids[k] * bytes, one, 0, bytes);
        one.copyToHost(0, MemorySegment.ofArray(there));
        target.copyToHost((long) k * bytes, MemorySegment.ofArray(got));
        if (!Arrays.equals(got, there)) {
          throw new IllegalStateException(
              "row %d is not what %s has: at byte %d of %d"
                  .formatted(ids[k], storage.address(), Arrays.mismatch(got, there), bytes));
        }
      }
    }
    return count;
  }
}
