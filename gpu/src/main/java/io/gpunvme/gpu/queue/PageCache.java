package io.gpunvme.gpu.queue;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.DeviceLayout.Array;
import io.gpunvme.gpu.queue.DeviceLayout.Cache;
import io.gpunvme.gpu.queue.DeviceLayout.FrameInfo;
import io.gpunvme.gpu.queue.DeviceLayout.FrameSet;
import io.gpunvme.gpu.queue.DeviceLayout.PageSource;
import io.gpunvme.gpu.queue.DeviceLayout.SetSide;
import io.gpunvme.gpu.queue.DeviceLayout.Tier;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.function.IntFunction;
import org.jspecify.annotations.Nullable;

/**
 * A cache of pages that all kernels on a {@link KernelStorage} share, for arrays that are larger
 * than GPU memory: {@link #array} describes one, which kernels read and write by the numbers of its
 * elements. Made by {@link KernelStorage#cache}.
 *
 * <p>What is stored to an array is on the SSD once its page made room for another, or after {@link
 * #flush}. Nobody else writes the bytes of an array meanwhile, and nobody else's reads see what was
 * not flushed. Safe for all threads; while a kernel runs, only {@link #counters} and {@link #array}
 * may be called.
 */
public final class PageCache implements AutoCloseable {
  private static final int MOST_SOURCES = 64;
  private static final int FLUSH_BLOCKS = 64;
  private static final int FLUSH_THREADS = 128;
  private static final int FLUSH_WARP = 32;
  private static final long SOURCES = Cache.SIZE;
  private static final long SETS = SOURCES + MOST_SOURCES * PageSource.SIZE;

  /** {@code frame::kMostPages}: a tag has 39 bits. */
  private static final long MOST_PAGES = (1L << 39) - 1;

  private final KernelStorage storage;
  private final Accelerator accelerator;
  private final PageCacheOptions options;
  private final int sets;
  private final DeviceBuffer frames;
  private final DeviceBuffer state;
  private final int buffer;
  private final @Nullable HostTier tier;
  private final List<Origin> origins = new ArrayList<>();

  /** Arrays, and the files that they are of; some are closed. */
  private final List<DeviceTable> tables = new ArrayList<>();

  /** Made for the first rows. */
  private volatile @Nullable RowKernels rowKernels;

  /** What each page of an origin must be, where they are compared. */
  private final List<DeviceBuffer> sums = new ArrayList<>();

  private long pages;
  private boolean closed;

  /** What arrays are of; two of the same bytes share their pages. */
  private record Origin(DeviceFile file, long first) {
    boolean is(DeviceFile other) {
      return file.bytes() == other.bytes()
          && file.set().equals(other.set())
          && file.extents().equals(other.extents());
    }
  }

  private PageCache(
      KernelStorage storage,
      Accelerator accelerator,
      PageCacheOptions options,
      DeviceBuffer frames,
      DeviceBuffer state,
      int buffer,
      @Nullable HostTier tier) {
    this.storage = storage;
    this.accelerator = accelerator;
    this.options = options;
    this.sets = sets(options);
    this.frames = frames;
    this.state = state;
    this.buffer = buffer;
    this.tier = tier;
  }

  private static int sets(PageCacheOptions options) {
    return (int) (options.bytes() / options.pageBytes() / Cache.WAYS);
  }

  static PageCache create(
      KernelStorage storage,
      Accelerator accelerator,
      Placement placement,
      PageCacheOptions options) {
    int sets = sets(options);
    long bytes = (long) sets * Cache.WAYS * options.pageBytes();
    DeviceBuffer frames = placement.allocate(accelerator, bytes);
    try {
      // Cleared: every frame is free.
      DeviceBuffer state =
          accelerator.allocate(
              SETS + sets * (FrameSet.SIZE + SetSide.SIZE + Cache.WAYS * FrameInfo.SIZE));
      try {
        HostTier tier =
            options.hostTierBytes() == 0
                ? null
                : HostTier.create(accelerator, options.hostTierBytes(), options.pageBytes());
        try {
          int buffer = storage.registerNow(frames, frames.size());
          PageCache cache =
              new PageCache(storage, accelerator, options, frames, state, buffer, tier);
          try {
            cache.describe();
          } catch (RuntimeException | Error e) {
            CloseAll.after(e, () -> storage.giveBack(buffer));
            throw e;
          }
          return cache;
        } catch (RuntimeException | Error e) {
          if (tier != null) {
            CloseAll.after(e, tier::free);
          }
          throw e;
        }
      } catch (RuntimeException | Error e) {
        CloseAll.after(e, state::close);
        throw e;
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, frames::close);
      throw e;
    }
  }

  private void describe() {
    long address = state.deviceAddress();
    long sides = SETS + sets * FrameSet.SIZE;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(Cache.SIZE, Long.BYTES);
      DeviceLayout.setLong(all, Cache.SETS, address + SETS);
      DeviceLayout.setLong(all, Cache.SIDES, address + sides);
      DeviceLayout.setLong(all, Cache.INFOS, address + sides + sets * SetSide.SIZE);
      DeviceLayout.setLong(all, Cache.MEMORY, frames.deviceAddress());
      DeviceLayout.setLong(all, Cache.STORAGE, storage.deviceHandle());
      DeviceLayout.setLong(all, Cache.SOURCES, address + SOURCES);
      DeviceLayout.setInt(all, Cache.BUFFER, buffer);
      DeviceLayout.setInt(all, Cache.SET_COUNT, sets);
      DeviceLayout.setInt(
          all, Cache.PAGE_SHIFT, Integer.numberOfTrailingZeros(options.pageBytes()));
      DeviceLayout.setInt(all, Cache.COUNTS, options.counting() ? 1 : 0);
      DeviceLayout.setLong(all, Cache.TIMEOUT_NS, options.timeout().toNanos());
      DeviceLayout.setLong(all, Cache.TIER, tier == null ? 0 : tier.deviceAddress());
      DeviceLayout.setInt(all, Cache.VERIFIES, options.verifying() ? 1 : 0);
      state.copyFromHost(all, 0);
    }
  }

  /** Whose kernels it is for. */
  public KernelStorage storage() {
    return storage;
  }

  /** The number of its buffer in the storage. */
  int buffer() {
    return buffer;
  }

  /**
   * Describes elements of a file, a partition, a namespace or a stripe set. Make it before kernels
   * are launched: on a GPU this waits for those that run. {@code GpuStorage.arrayForKernels} does
   * it for what has an address. Arrays of the same file share their pages; what lies in a file and
   * in its namespace at once does not.
   *
   * @param file of the same storage; may be closed after this
   * @param offset bytes of the file before element 0: a multiple of {@code elementBytes}
   * @param count elements, above 0
   * @param elementBytes {@code sizeof(T)}: a power of two, at most a page
   * @param writable whether kernels may store elements; only if the file is all there, without
   *     holes. From then on no page of the file is taken from the host tier or put there, whether
   *     or not this array is closed
   * @return to be closed before this, which closes it otherwise
   * @throws InvalidRequestException if a number is not as described, or the cache has arrays of 64
   *     files already
   */
  public synchronized DeviceArray array(
      DeviceFile file, long offset, long count, int elementBytes, boolean writable) {
    requireOpen();
    check(file, offset, count, elementBytes, writable);
    Origin origin = origin(file, writable);
    long page = options.pageBytes();
    DeviceBuffer memory = accelerator.allocate(Array.SIZE);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate(Array.SIZE, Long.BYTES);
      DeviceLayout.setLong(all, Array.CACHE, state.deviceAddress());
      DeviceLayout.setLong(all, Array.FIRST, origin.first() + offset / page);
      DeviceLayout.setLong(all, Array.OFFSET, offset % page);
      DeviceLayout.setLong(all, Array.BYTES, count * elementBytes);
      DeviceLayout.setInt(all, Array.WRITABLE, writable ? 1 : 0);
      DeviceLayout.setInt(all, Array.ELEMENT_BYTES, elementBytes);
      memory.copyFromHost(all, 0);
      DeviceArray made = storage.add(new DeviceArray(storage, memory, count, elementBytes));
      tables.add(made);
      return made;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, memory::close);
      throw e;
    }
  }

  /**
   * Describes a matrix of a file, a partition, a namespace or a stripe set, whose rows lie one
   * behind the other. Make it before kernels are launched. {@code GpuStorage.rowsForKernels} does
   * it for what has an address.
   *
   * @param file as for {@link #array}
   * @param offset bytes of the file before row 0
   * @param rows above 0
   * @param rowBytes above 0
   * @param writable as for {@link #array}
   * @return to be closed before this, which closes it otherwise
   * @throws InvalidRequestException as {@link #array}, or if the accelerator is no GPU that kernels
   *     can be launched on
   */
  public synchronized DeviceRows rows(
      DeviceFile file, long offset, long rows, long rowBytes, boolean writable) {
    requireOpen();
    if (rows < 1 || rowBytes < 1 || rows > Long.MAX_VALUE / rowBytes) {
      throw new InvalidRequestException(
          "%d rows of %d bytes: at least one of each, and fewer than 2^63 bytes, is what a matrix has"
              .formatted(rows, rowBytes));
    }
    RowKernels kernels = rowKernels;
    if (kernels == null) {
      kernels = new RowKernels(storage, accelerator, (long) sets * Cache.WAYS);
      rowKernels = kernels;
    }
    DeviceArray array = array(file, offset, rows * rowBytes, 1, writable);
    return new DeviceRows(kernels, array, rows, rowBytes, writable);
  }

  /**
   * Has pages compared with what they must be from their first read on. No kernel runs. For a cache
   * that verifies ({@link PageCacheOptions#withVerify}).
   *
   * @param file of the same storage, with or without arrays yet
   * @param first the first page, counted in pages of this cache from the file's begin
   * @param crcs the CRC-32C of each page from there on; the last page of the file ends with the
   *     file
   * @throws InvalidRequestException if the cache does not verify, or the pages are not inside the
   *     file
   */
  public synchronized void expect(DeviceFile file, long first, int[] crcs) {
    requireOpen();
    if (!options.verifying()) {
      throw new InvalidRequestException(
          "this cache compares nothing: open it with PageCacheOptions.withVerify");
    }
    long count = Math.ceilDiv(file.bytes(), (long) options.pageBytes());
    if (first < 0 || first > count || crcs.length > count - first) {
      throw new InvalidRequestException(
          "%d pages from page %d on are not inside a file of %d"
              .formatted(crcs.length, first, count));
    }
    int origin = origins.indexOf(origin(file, false));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate((long) crcs.length * Integer.BYTES, Integer.BYTES);
      for (int i = 0; i < crcs.length; i++) {
        // 0 says that it is not known.
        DeviceLayout.setInt(all, (long) i * Integer.BYTES, crcs[i] == 0 ? 1 : crcs[i]);
      }
      sums.get(origin).copyFromHost(all, first * Integer.BYTES);
    }
  }

  private void check(DeviceFile file, long offset, long count, int elementBytes, boolean writable) {
    if (elementBytes < 1
        || elementBytes > options.pageBytes()
        || Integer.bitCount(elementBytes) != 1) {
      throw new InvalidRequestException(
          "elements of %d bytes: a power of two up to a page of %d bytes is wanted"
              .formatted(elementBytes, options.pageBytes()));
    }
    if (offset < 0
        || offset % elementBytes != 0
        || offset > file.bytes()
        || count < 1
        || count > (file.bytes() - offset) / elementBytes) {
      throw new InvalidRequestException(
          "%d elements of %d bytes from byte %d on: at a multiple of an element, inside the %d bytes"
                  .formatted(count, elementBytes, offset, file.bytes())
              + " of the file, is what an array is");
    }
    int block = file.set().blockSize();
    if (block > options.pageBytes()) {
      throw new InvalidRequestException(
          "pages of %d bytes are smaller than the SSD's blocks of %d: open the cache with larger pages"
              .formatted(options.pageBytes(), block));
    }
    long there = file.extents().stream().mapToLong(DeviceExtent::bytes).sum();
    if (writable && (there != file.bytes() || file.bytes() % block != 0)) {
      throw new InvalidRequestException(
          "a writable array of a file with holes, or that ends within a block (%d of %d bytes are on"
                  .formatted(there, file.bytes())
              + " the SSD, in blocks of %d)".formatted(block));
    }
  }

  private Origin origin(DeviceFile file, boolean writable) {
    for (int i = 0; i < origins.size(); i++) {
      if (origins.get(i).is(file)) {
        if (writable) {
          leaveTier(i);
        }
        return origins.get(i);
      }
    }
    long more = Math.ceilDiv(file.bytes(), (long) options.pageBytes());
    if (origins.size() == MOST_SOURCES || more > MOST_PAGES - pages) {
      throw new InvalidRequestException(
          "a cache has arrays of at most %d files, and of %d pages together"
              .formatted(MOST_SOURCES, MOST_PAGES));
    }
    // Its own, because pages outlive what the caller has.
    DeviceFile own = storage.file(file.set(), file.bytes(), file.extents());
    tables.add(own);
    if (options.verifying()) {
      // Cleared: nothing is known yet.
      sums.add(accelerator.allocate(more * Integer.BYTES));
    }
    Origin made = new Origin(own, pages);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment struct = arena.allocate(PageSource.SIZE, Long.BYTES);
      DeviceLayout.setLong(struct, PageSource.FIRST, pages);
      DeviceLayout.setLong(struct, PageSource.PAGES, more);
      DeviceLayout.setLong(struct, PageSource.FILE, own.deviceAddress());
      DeviceLayout.setLong(
          struct, PageSource.SUMS, sums.isEmpty() ? 0 : sums.getLast().deviceAddress());
      DeviceLayout.setInt(struct, PageSource.TIERED, tier != null && !writable ? 1 : 0);
      state.copyFromHost(struct, SOURCES + origins.size() * PageSource.SIZE);
      MemorySegment total = arena.allocate(Integer.BYTES, Integer.BYTES);
      DeviceLayout.setInt(total, 0, origins.size() + 1);
      state.copyFromHost(total, Cache.SOURCE_COUNT);
    }
    origins.add(made);
    pages += more;
    return made;
  }

  /**
   * For good: kernels that store are launched after this, and see it. What is in the tier of it is
   * never looked for again, and makes room in time.
   */
  private void leaveTier(int origin) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment none = arena.allocate(Integer.BYTES, Integer.BYTES);
      state.copyFromHost(none, SOURCES + origin * PageSource.SIZE + PageSource.TIERED);
    }
  }

  /**
   * Has everything that kernels have stored written to the SSDs and made durable. No kernel runs
   * that stores, but those that update rows, for which this waits. Pages whose write fails stay in
   * the cache, to be flushed again.
   *
   * @param limit how long it may take
   * @throws RowsFailedException if rows were not updated, of which nobody was told yet: all else is
   *     written
   * @throws DirtyPagesException if not all was written: it says why. {@link KernelStorage#errors}
   *     has the blocks
   * @throws InvalidRequestException if the accelerator is no GPU that kernels can be launched on
   */
  public void flush(Duration limit) {
    long end = System.nanoTime() + limit.toNanos();
    RowKernels kernels = rowKernels;
    if (kernels != null) {
      kernels.awaitUpdates(end);
    }
    flushStored(end);
    if (kernels != null) {
      kernels.checkUpdates();
    }
  }

  private synchronized void flushStored(long end) {
    requireOpen();
    GpuAccelerator gpu =
        accelerator
            .cuda()
            .orElseThrow(
                () -> new InvalidRequestException("only a GPU flushes a cache of its memory"));
    GpuModule module = GpuModule.resource(gpu, "cache");
    int blocks = Math.clamp(sets, 1, FLUSH_BLOCKS);
    try (CudaStream stream = gpu.betweenKernels(() -> gpu.context().stream());
        DeviceBuffer statuses =
            accelerator.allocate((long) blocks * FLUSH_THREADS * Integer.BYTES)) {
      stream.launch(
          module.function("gpunvme_cache_clean"),
          LaunchShape.of(blocks, FLUSH_THREADS),
          arguments(statuses));
      await(stream, end, statuses, blocks * FLUSH_THREADS, DirtyPagesException::unwritten);
      int ssds = storage.ssds();
      stream.launch(
          module.function("gpunvme_cache_flush"),
          LaunchShape.of(ssds, FLUSH_WARP),
          arguments(statuses));
      await(stream, end, statuses, ssds, DirtyPagesException::notDurable);
    }
  }

  private KernelArguments arguments(DeviceBuffer statuses) {
    return new KernelArguments().addLong(state.deviceAddress()).addLong(statuses.deviceAddress());
  }

  private void await(
      CudaStream stream,
      long end,
      DeviceBuffer statuses,
      int count,
      IntFunction<DirtyPagesException> failure) {
    storage.await(stream::isIdle, Duration.ofNanos(Math.max(0, end - System.nanoTime())));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment all = arena.allocate((long) count * Integer.BYTES, Integer.BYTES);
      statuses.copyToHost(0, all);
      for (int i = 0; i < count; i++) {
        int status = DeviceLayout.getInt(all, (long) i * Integer.BYTES);
        if (DeviceStatus.failed(status)) {
          throw failure.apply(status);
        }
      }
    }
  }

  /** What was counted so far. */
  public synchronized PageCacheCounters counters() {
    requireOpen();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment head = arena.allocate(Cache.SIZE, Long.BYTES);
      state.copyToHost(0, head);
      long acquires = 0;
      if (options.counting()) {
        MemorySegment sides = arena.allocate(sets * SetSide.SIZE, Long.BYTES);
        state.copyToHost(SETS + sets * FrameSet.SIZE, sides);
        for (long i = 0; i < sets; i++) {
          acquires += DeviceLayout.getLong(sides, i * SetSide.SIZE + SetSide.ACQUIRES);
        }
      }
      MemorySegment tiers = arena.allocate(Tier.SIZE, Long.BYTES);
      if (tier != null) {
        tier.copyToHost(tiers);
      }
      return PageCacheCounters.read(head, acquires, tiers);
    }
  }

  /** Bytes of pages that it holds. */
  public long bytes() {
    return (long) sets * Cache.WAYS * options.pageBytes();
  }

  /** Bytes of pages that its host tier holds; 0 without one. */
  public long hostTierBytes() {
    return tier == null ? 0 : tier.bytes();
  }

  /** Bytes of GPU memory that it takes besides {@link #bytes}. */
  public synchronized long metadataBytes() {
    return state.size()
        + (tier == null ? 0 : tier.metadataBytes())
        + sums.stream().mapToLong(DeviceBuffer::size).sum();
  }

  private void requireOpen() {
    storage.requireOpen();
    if (closed) {
      throw new IllegalStateException("this cache is closed");
    }
  }

  /** Kernels are given none of them any more. */
  void closeTables() {
    CloseAll.each(tables, DeviceTable::close);
    tables.clear();
  }

  /**
   * The host has recovered an SSD's queues, and no kernel runs: pages that were on the way by them
   * do not come any more. Their commands' slots are others' now.
   */
  void recovered(DeviceQueues queues) {
    long first = queues.deviceAddress();
    long end = first + queues.queues().size() * DeviceLayout.Queue.SIZE;
    if (parked() == 0) {
      return;
    }
    long infosAt = SETS + sets * (FrameSet.SIZE + SetSide.SIZE);
    int frameCount = sets * Cache.WAYS;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment words = arena.allocate(sets * FrameSet.SIZE, Long.BYTES);
      MemorySegment infos = arena.allocate(frameCount * FrameInfo.SIZE, Long.BYTES);
      state.copyToHost(SETS, words);
      state.copyToHost(infosAt, infos);
      long gone = 0;
      for (long f = 0; f < frameCount; f++) {
        long queue = DeviceLayout.getLong(infos, f * FrameInfo.SIZE + FrameInfo.QUEUE);
        boolean parked = DeviceLayout.getInt(infos, f * FrameInfo.SIZE + FrameInfo.PARKED) != 0;
        if (parked && queue >= first && queue < end) {
          DeviceLayout.setInt(infos, f * FrameInfo.SIZE + FrameInfo.PARKED, 0);
          DeviceLayout.setLong(words, f * Long.BYTES, 0);
          gone++;
        }
      }
      if (gone != 0) {
        MemorySegment count = arena.allocate(Long.BYTES, Long.BYTES);
        DeviceLayout.setLong(count, 0, parked() - gone);
        state.copyFromHost(count, Cache.PARKED);
        state.copyFromHost(words, SETS);
        state.copyFromHost(infos, infosAt);
      }
    }
  }

  /** Pages on the way for which nobody waits. */
  private long parked() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment count = arena.allocate(Long.BYTES, Long.BYTES);
      state.copyToHost(Cache.PARKED, count);
      return DeviceLayout.getLong(count, 0);
    }
  }

  // Those that follow wait without the locks of a storage, which the ends of kernels take.

  /** Waits for kernels that move rows, as many as were started. */
  void awaitRows() {
    RowKernels kernels = rowKernels;
    if (kernels != null) {
      kernels.awaitStarted();
      kernels.settle();
    }
  }

  /** If none of these kernels runs, the storage has none that is waited for either. */
  void settleRows() {
    RowKernels kernels = rowKernels;
    if (kernels != null) {
      kernels.settle();
    }
  }

  /** Ends the moving of rows for good. */
  void shutRows(boolean forGood) {
    RowKernels kernels = rowKernels;
    if (kernels != null) {
      kernels.shut(forGood);
    }
  }

  void free() {
    RowKernels kernels = rowKernels;
    if (kernels != null) {
      kernels.close();
    }
    CloseAll.each(sums, DeviceBuffer::close);
    state.close();
    frames.close();
    if (tier != null) {
      tier.free();
    }
  }

  /**
   * No kernel uses it any more, but those that move rows, for which this waits. What was stored and
   * not flushed is lost. Closing the storage closes it, too.
   *
   * @throws StorageBusyException if a kernel is waited for, or commands may still move data
   */
  @Override
  public void close() {
    storage.settleRows();
    shutRows(false);
    try {
      synchronized (this) {
        storage.close(this);
        closed = true;
      }
    } catch (StorageBusyException e) {
      RowKernels kernels = rowKernels;
      if (kernels != null) {
        kernels.reopen();
      }
      throw e;
    }
  }
}
