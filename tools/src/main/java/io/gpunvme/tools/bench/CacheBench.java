package io.gpunvme.tools.bench;

import static io.gpunvme.gpu.queue.DeviceLayout.getLong;
import static io.gpunvme.gpu.queue.DeviceLayout.setInt;
import static io.gpunvme.gpu.queue.DeviceLayout.setLong;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.DeviceArray;
import io.gpunvme.gpu.queue.DeviceExtent;
import io.gpunvme.gpu.queue.DeviceFile;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.PageCache;
import io.gpunvme.gpu.queue.PageCacheCounters;
import io.gpunvme.gpu.queue.PageCacheOptions;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.queue.StripeSet;
import io.gpunvme.tools.bench.BenchLayout.ArrayArgs;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/**
 * An array on an embedded SSD, used by kernels through a {@link PageCache}; each word is checked.
 * For one thread.
 */
final class CacheBench implements AutoCloseable {
  static final String PREFIX = "cache.";

  private static final String KERNEL = "gpunvme_bench_array_";
  private static final String HITS = PREFIX + "hits.";
  private static final int BLOCKS = 132 * 6;
  private static final int FEW_BLOCKS = 132;

  /** So that half of the frames is enough for what all threads read at once. */
  private static final int READ_BLOCKS = 32;

  /** So that a quarter of the frames is enough for what all warps pin at once. */
  private static final int PIN_BLOCKS = 16;

  private static final int THREADS = 256;
  private static final int WARP = 32;
  private static final int PAGE = 4096;
  private static final int PAGE_WORDS = PAGE / Long.BYTES;
  private static final int QUEUE_PAIRS = 48;
  private static final int FEW_QUEUE_PAIRS = 4;
  private static final long HOT_BYTES = 1L << 30;

  /** A sixteenth of the SSD, which the processors' caches hold. */
  private static final long COLD_BYTES = 64L << 20;

  /** What is wanted more or less often is read through so much. */
  private static final long SKEWED_CACHE_BYTES = 8L << 20;

  private static final long TIER_BYTES = 3 * SKEWED_CACHE_BYTES;

  /** Four times as large as both. Small, because CUDA copies move each page of an embedded SSD. */
  static final long SKEWED_BYTES = 4 * (SKEWED_CACHE_BYTES + TIER_BYTES);

  /** So that the frames are enough for all lanes. */
  private static final int SKEWED_BLOCKS = 8;

  /** Kernels until what is wanted often is in the tier. */
  private static final int WARM_UPS = 4;

  private static final String TIERED = PREFIX + "tier";

  private static final int RESULT_BYTES = 5 * Long.BYTES;
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final double NANOS_PER_SECOND = 1e9;

  /**
   * One result.
   *
   * @param kernel behind {@link #KERNEL}
   * @param lanes of each warp that want something
   * @param rounds of each warp
   * @param hot whether all of it is in the cache, which is in GPU memory
   */
  private record Case(String kernel, int lanes, int rounds, boolean hot, int blocks) {
    boolean raw() {
      return kernel.startsWith("raw_");
    }

    /** Some pages are wanted more often than others. */
    boolean skewed() {
      return kernel.equals("skewed");
    }

    Placement placement() {
      return skewed() ? Placement.VRAM_DATA : hot ? Placement.VRAM : Placement.HOST;
    }

    boolean writes() {
      return kernel.endsWith("writes");
    }

    /** Few where CUDA copies move the data: they are made for all commands of a pair at once. */
    int queuePairs() {
      return hot || skewed() ? FEW_QUEUE_PAIRS : QUEUE_PAIRS;
    }

    long cacheBytes() {
      return hot ? HOT_BYTES : skewed() ? SKEWED_CACHE_BYTES : COLD_BYTES;
    }
  }

  private static final Map<String, Case> CASES = cases();

  private static Map<String, Case> cases() {
    Map<String, Case> all = new LinkedHashMap<>();
    all.put(HITS + "pages", new Case("pages", WARP, 400, true, BLOCKS));
    all.put(HITS + "pages.uncounted", new Case("pages", WARP, 400, true, BLOCKS));
    all.put(HITS + "in-order", new Case("in_order", WARP, 10, true, BLOCKS));
    all.put(HITS + "in-order.uncounted", new Case("in_order", WARP, 10, true, BLOCKS));
    all.put(HITS + "anywhere", new Case("anywhere", WARP, 50, true, BLOCKS));
    all.put(PREFIX + "raw.reads", new Case("raw_reads", WARP, 160, false, READ_BLOCKS));
    all.put(PREFIX + "misses", new Case("misses", WARP, 160, false, READ_BLOCKS));
    all.put(PREFIX + "raw.reads.lanes1", new Case("raw_reads", 1, 400, false, FEW_BLOCKS));
    all.put(PREFIX + "misses.lanes1", new Case("misses", 1, 400, false, FEW_BLOCKS));
    all.put(TIERED + ".off", new Case("skewed", WARP, 40, false, SKEWED_BLOCKS));
    all.put(TIERED, new Case("skewed", WARP, 40, false, SKEWED_BLOCKS));
    all.put(PREFIX + "raw.writes", new Case("raw_writes", WARP, 1, false, FEW_BLOCKS));
    all.put(PREFIX + "writes", new Case("writes", WARP, 1, false, PIN_BLOCKS));
    return all;
  }

  private final GpuAccelerator accelerator;
  private final BenchKernels kernels;
  private final BenchDevice device;
  private final int workers;

  /**
   * @param bytes of the SSD, a power of two
   * @param workers threads of the controller
   */
  CacheBench(GpuAccelerator accelerator, long bytes, int workers) {
    this.accelerator = accelerator;
    this.workers = workers;
    device = new BenchDevice(bytes, PAGE, workers);
    try {
      BlockPattern.hashWords(device.medium());
      List<String> names = new ArrayList<>(List.of(KERNEL + "fill"));
      CASES.values().forEach(c -> names.add(KERNEL + c.kernel));
      kernels = CudaBenchKernels.load(accelerator, "arrays", names.stream().distinct().toList());
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, device::close);
      throw e;
    }
  }

  /** The names of all results; those past the cache come before those that go through it. */
  static List<String> ids() {
    return List.copyOf(CASES.keySet());
  }

  /** Whether it is a result of {@link TierBench}. */
  static boolean isTiered(String id) {
    return id.startsWith(TIERED);
  }

  /** What a result cannot be better than: the same past the cache. */
  static String limit(String id) {
    return switch (id.substring(PREFIX.length())) {
      case "misses" -> PREFIX + "raw.reads";
      case "misses.lanes1" -> PREFIX + "raw.reads.lanes1";
      case "writes" -> PREFIX + "raw.writes";
      default -> "";
    };
  }

  /**
   * Pages or words per second.
   *
   * @param id one of {@link #ids}
   * @throws BenchException if a word was wrong, or a read or write failed
   */
  Measurement measure(String id, Repetitions repetitions) {
    Case c = Objects.requireNonNull(CASES.get(id));
    Placement placement = c.placement();
    PageCacheOptions options = PageCacheOptions.of(c.cacheBytes());
    if (id.endsWith(".uncounted")) {
      options = options.withoutCounting();
    }
    if (id.equals(TIERED)) {
      options = options.withHostTier(TIER_BYTES);
    }
    try (KernelStorage storage =
            KernelStorage.over(
                List.of(device.controller()),
                accelerator,
                KernelStorageOptions.in(placement).with(c.queuePairs(), 0));
        Run run = new Run(id, c, storage, placement, options)) {
      double[] samples = repetitions.samples(run::once);
      return Measurement.of(id, unit(id), samples, run.conditions());
    }
  }

  private static String unit(String id) {
    if (id.contains("in-order") || id.endsWith("anywhere") || id.startsWith(TIERED)) {
      return "words/s";
    }
    return "pages/s";
  }

  /** The repetitions of one result. */
  private final class Run implements AutoCloseable {
    private final String id;
    private final Case c;
    private final KernelStorage storage;
    private final PageCache cache;
    private final DeviceArray array;
    private final DeviceBuffer places;
    private final DeviceBuffer result;
    private final Placement placement;
    private int repetition;

    /** Of all words; 0 before they were compared. */
    private long sum;

    private PageCacheCounters before;

    Run(String id, Case c, KernelStorage storage, Placement placement, PageCacheOptions options) {
      this.id = id;
      this.c = c;
      this.storage = storage;
      this.placement = placement;
      places = placement.allocate(accelerator, c.raw() ? (long) c.blocks * THREADS * PAGE : PAGE);
      storage.register(places);
      cache = storage.cache(options);
      long bytes = device.namespace().bytes();
      StripeSet set =
          new StripeSet(
              List.of(new StripeSet.Member(device.controller(), device.namespace(), 0)),
              PAGE,
              bytes);
      // Hits: a quarter of the frames, so that no set has more pages than frames.
      long used = c.hot ? HOT_BYTES / 4 : c.skewed() ? SKEWED_BYTES : bytes;
      long words = used / Long.BYTES;
      try (DeviceFile file = storage.file(set, bytes, List.of(new DeviceExtent(0, bytes, 0)))) {
        array = cache.array(file, 0, words, Long.BYTES, c.writes());
      }
      result = accelerator.allocate(RESULT_BYTES);
      if (c.hot) {
        run("fill", 1, FEW_BLOCKS);
      }
      for (int i = 0; c.skewed() && i < WARM_UPS; i++) {
        run(c.kernel, c.rounds, c.blocks);
      }
      before = cache.counters();
    }

    double once() {
      long byCpu = device.commandsByCpu();
      before = cache.counters();
      if (c.writes()) {
        device.medium().fill((byte) 0);
      }
      double seconds = run(c.kernel, c.rounds, c.blocks) / NANOS_PER_SECOND;
      if (c.writes() && !c.raw()) {
        long begin = System.nanoTime();
        cache.flush(LIMIT);
        seconds += (System.nanoTime() - begin) / NANOS_PER_SECOND;
      }
      device.requireNoneByCpu(id, byCpu);
      if (c.writes()) {
        BlockPattern.requireWords(device.medium(), 0, id);
      }
      return amount() / seconds;
    }

    /** What the unit counts, of one repetition. */
    private double amount() {
      double warps = (double) c.blocks * THREADS / WARP;
      return switch (c.kernel) {
        case "pages" -> warps * c.rounds;
        case "in_order" -> (double) array.count() * c.rounds;
        case "writes", "raw_writes" -> (double) array.count() / PAGE_WORDS;
        // Not what was there, or on its way for another.
        case "misses" -> cache.counters().reads() - before.reads();
        default -> warps * c.lanes * c.rounds;
      };
    }

    private long run(String kernel, int rounds, int blocks) {
      try (Arena arena = Arena.ofConfined()) {
        MemorySegment found = arena.allocate(RESULT_BYTES, Long.BYTES);
        result.copyFromHost(found, 0);
        MemorySegment args = arena.allocate(ArrayArgs.SIZE, Long.BYTES);
        setLong(args, ArrayArgs.ARRAY, array.deviceAddress());
        setLong(args, ArrayArgs.RESULT, result.deviceAddress());
        setLong(args, ArrayArgs.STORAGE, storage.deviceHandle());
        setInt(args, ArrayArgs.PAGE_WORDS, PAGE_WORDS);
        setInt(args, ArrayArgs.ROUNDS, rounds);
        // Hits are the same ones each time: they are compared the first time, and added up each
        // time.
        setInt(args, ArrayArgs.SEED, c.hot ? 1 : ++repetition);
        setInt(args, ArrayArgs.LANES, c.lanes);
        setInt(args, ArrayArgs.CHECKS, !c.hot || sum == 0 ? 1 : 0);
        LaunchedKernel launched = kernels.start(KERNEL + kernel, blocks, THREADS, args);
        storage.await(launched::isOver, LIMIT);
        result.copyToHost(0, found);
        if (getLong(found, 0) != 0) {
          throw new BenchException(
              "%s: %d words or pages are wrong, of them word %d: %X, status %X; %s; %s"
                  .formatted(
                      id,
                      getLong(found, 0),
                      getLong(found, 8),
                      getLong(found, 16),
                      getLong(found, 24),
                      storage.errors(),
                      cache.counters()));
        }
        if (kernel.equals(c.kernel) && c.hot) {
          long now = getLong(found, 32);
          if (sum != 0 && now != sum) {
            throw new BenchException(
                "%s: the words' sum is %X, and was %X".formatted(id, now, sum));
          }
          sum = now;
        }
        return launched.nanos();
      }
    }

    Map<String, Object> conditions() {
      Map<String, Object> all = new LinkedHashMap<>();
      all.put("placement", placement.toString());
      all.put("page_bytes", PAGE);
      all.put("array_bytes", array.count() * Long.BYTES);
      all.put("threads", c.blocks * THREADS);
      all.put("lanes", c.lanes);
      all.put("queue_pairs", storage.queuePairs());
      all.put("controller_threads", workers);
      all.put("registers", kernels.registers(KERNEL + c.kernel));
      if (!c.raw()) {
        PageCacheCounters now = cache.counters();
        all.put("cache_bytes", cache.bytes());
        all.put("metadata_bytes", cache.metadataBytes());
        all.put("reads", now.reads() - before.reads());
        all.put("joined", now.joined() - before.joined());
        all.put("conflicts", now.conflicts() - before.conflicts());
        all.put("writes", now.writes() - before.writes());
        if (c.skewed()) {
          all.put("acquires", now.acquires() - before.acquires());
          all.put("misses", now.misses() - before.misses());
          all.put("tier_bytes", cache.hostTierBytes());
          all.put("tier_hits", now.tierHits() - before.tierHits());
          all.put("tier_inserts", now.tierInserts() - before.tierInserts());
        }
      }
      return all;
    }

    @Override
    public void close() {
      // The storage closes the rest, and frees what is registered.
      result.close();
      places.close();
    }
  }

  @Override
  public void close() {
    kernels.close();
    device.close();
  }
}
