package io.gpunvme.tools.bench;

import io.gpunvme.ffi.Posix;
import io.gpunvme.storage.path.file.SourceFile;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The rates of the disk and of the page cache alone: plain reads by threads, each into memory of
 * its own. Several numbers of threads are tried, and the best counts.
 */
final class DiskCeiling {
  static final String SEQUENTIAL = "limit.disk.seq";
  static final String AFTERWARDS = "limit.disk.seq.afterwards";

  /** Measured between the repetitions of what it limits. */
  static final String BESIDE = "limit.disk.seq.beside";

  static final String RANDOM = "limit.disk.rand4k";
  static final String CACHE = "limit.cache.seq";
  static final String CACHE_RANDOM = "limit.cache.rand4k";

  private static final double NANOS_PER_SECOND = 1e9;
  private static final int LONG_READ = 4 << 20;
  private static final int[] LONG_THREADS = {4, 8, 16};
  private static final int[] RANDOM_THREADS = {16, 64};

  private final PathFile file;
  private final long randomReads;
  private final PathBenchListener listener;

  /** Of the last sequential measurement past the page cache. */
  private int bestThreads = LONG_THREADS[0];

  DiskCeiling(PathFile file, int randomReads, PathBenchListener listener) {
    this.file = file;
    this.randomReads = randomReads;
    this.listener = listener;
  }

  static List<String> ids() {
    return List.of(SEQUENTIAL, CACHE, RANDOM, CACHE_RANDOM);
  }

  /**
   * Measures one of them.
   *
   * @throws BenchException if a read fails, or the file system has no O_DIRECT
   */
  Measurement measure(String id, Repetitions repetitions) {
    boolean random = id.equals(RANDOM) || id.equals(CACHE_RANDOM);
    boolean warm = id.equals(CACHE) || id.equals(CACHE_RANDOM);
    if (!warm && !file.source().hasDirect()) {
      throw new BenchException(file.source().directRefusal());
    }
    if (warm) {
      file.warm();
    } else {
      file.cool();
    }
    int[] numbers = random ? RANDOM_THREADS : LONG_THREADS;
    long bytes = random ? randomReads * PathFile.BLOCK : file.source().size();
    listener.begins(id, bytes * (repetitions.least() + 1) * numbers.length);
    Measurement best = null;
    for (int threads : numbers) {
      Measurement m = measure(id, random, warm, threads, repetitions);
      if (best == null || m.median() > best.median()) {
        best = m;
        bestThreads = random || warm ? bestThreads : threads;
      }
    }
    if (best == null) {
      throw new IllegalStateException("there are no thread counts to try");
    }
    return best;
  }

  /**
   * The sequential rate past the page cache once more, by as many threads as were best before, in
   * 10^9 bytes a second.
   */
  double again() {
    long reads = file.source().size() / LONG_READ;
    return reads * (double) LONG_READ / once(false, false, bestThreads, LONG_READ, reads);
  }

  private Measurement measure(
      String id, boolean random, boolean warm, int threads, Repetitions repetitions) {
    int length = random ? PathFile.BLOCK : LONG_READ;
    long reads = random ? randomReads : file.source().size() / LONG_READ;
    double[] samples =
        repetitions.samples(
            () -> {
              long nanos = once(random, warm, threads, length, reads);
              listener.moved(reads * length);
              double amount = random ? reads : reads * (double) length / NANOS_PER_SECOND;
              return amount * NANOS_PER_SECOND / nanos;
            });
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("threads", threads);
    conditions.put("block_bytes", length);
    conditions.put("reads", reads);
    return Measurement.of(id, random ? "commands/s" : "GB/s", samples, conditions);
  }

  private long once(boolean random, boolean warm, int threads, int length, long reads) {
    SourceFile source = file.source();
    int fd = warm ? source.fd() : source.directFd();
    AtomicLong next = new AtomicLong();
    Callable<Boolean> share =
        () -> {
          try (Arena arena = Arena.ofConfined()) {
            MemorySegment into = arena.allocate(length, PathFile.BLOCK);
            long i = next.getAndIncrement();
            while (i < reads) {
              long block = random ? BlockPattern.hash(i) : i;
              long at = Long.remainderUnsigned(block, source.size() / length) * length;
              if (Posix.pread(fd, into, at) != length || !PathFile.isAt(into, at)) {
                throw new BenchException("the data read at " + at + " differs from the file");
              }
              i = next.getAndIncrement();
            }
            return true;
          }
        };
    try (ExecutorService pool = Executors.newFixedThreadPool(threads)) {
      List<Callable<Boolean>> all = new ArrayList<>();
      for (int t = 0; t < threads; t++) {
        all.add(share);
      }
      long start = System.nanoTime();
      for (Future<Boolean> done : pool.invokeAll(all)) {
        done.get();
      }
      return System.nanoTime() - start;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new BenchException("interrupted");
    } catch (ExecutionException e) {
      throw new BenchException("reading " + source.name() + ": " + e.getCause());
    }
  }
}
