package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.nvme.NvmeException;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.TransferResult;
import io.gpunvme.storage.path.PathKind;
import io.gpunvme.storage.path.PathStats;
import io.gpunvme.storage.path.Range;
import io.gpunvme.storage.path.StorageException;
import io.gpunvme.storage.path.StorageException.Kind;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.HdrHistogram.Histogram;
import org.jspecify.annotations.Nullable;

/**
 * Reads the same file into the same accelerator's memory by every path, from a cold and from a warm
 * page cache, and measures the disk and the page cache alone for comparison. Every byte is
 * compared. For one thread.
 *
 * <p>The path {@code direct} reads the file through an embedded controller, whose own processor
 * time is reported separately. Its random blocks go to pinned memory, which the GPU addresses: a
 * controller in software would need a CUDA copy for each block of GPU memory.
 */
public final class PathBench implements AutoCloseable {
  private static final int MEBIBYTE = 1 << 20;
  private static final double NANOS_PER_SECOND = 1e9;
  private static final String AUTO = "auto";

  /** What the names of the embedded controllers' threads start with. */
  private static final String WORKERS = "sim:";

  private static final int LONG_READ_QUEUES = 16;

  // As RandomBench has it: so many warps keep twelve threads of the controller busy, and doorbells
  // have cache lines of their own.
  private static final int RANDOM_QUEUES = 48;
  private static final int RANDOM_DEPTH = 64;
  private static final int DOORBELL_STRIDE = 5;

  /** Reads past the page cache take longer, and this many less of them tell as much. */
  private static final int COLD_SHARE = 8;

  /** Of a file that is cold, the page cache holds no more than this share. */
  private static final double COLD = 0.02;

  private final Accelerator accelerator;
  private final PathBenchOptions options;
  private final PathBenchListener listener;
  private final PathFile file;
  private final DiskCeiling ceiling;
  private final DeviceBuffer target;
  private final DeviceBuffer pinned;
  private final Map<String, Measurement> limits = new LinkedHashMap<>();
  private final List<Measurement> results = new ArrayList<>();

  /** Threads that cuFile was fastest with in the last sequential case. */
  private int bestThreads = 1;

  /**
   * Makes the file.
   *
   * @param accelerator stays the caller's
   * @throws StorageException if the folder has no room for it
   */
  public PathBench(Accelerator accelerator, PathBenchOptions options, PathBenchListener listener)
      throws IOException {
    this.accelerator = accelerator;
    this.options = options;
    this.listener = listener;
    PathFile.requireRoom(options.folder(), options.fileBytes());
    long bytes = Math.max(options.fileBytes(), (long) options.randomReads() * PathFile.BLOCK);
    DeviceBuffer device = null;
    try {
      device = accelerator.allocate(bytes);
      pinned = accelerator.allocatePinned(bytes);
    } catch (RuntimeException | Error e) {
      if (device != null) {
        CloseAll.after(e, device::close);
      }
      throw e;
    }
    target = device;
    // After its memory: a file that is too long for the machine is not made first.
    listener.begins("make file", options.fileBytes());
    try {
      file = new PathFile(options.folder(), options.fileBytes(), listener::moved);
    } catch (IOException | RuntimeException e) {
      CloseAll.after(e, List.of(pinned, target), DeviceBuffer::close);
      throw e;
    }
    ceiling = new DiskCeiling(file, coldReads(), listener);
  }

  /**
   * Measures everything.
   *
   * @return all results, each beside its limit and the best other path
   * @throws BenchException if data was wrong
   */
  public List<Measurement> run() {
    for (String id : DiskCeiling.ids()) {
      try {
        Measurement m = ceiling.measure(id, options.repetitions());
        limits.put(id, m);
        listener.measured(m);
      } catch (BenchException e) {
        listener.skipped(id, String.valueOf(e.getMessage()));
      }
    }
    for (String path : options.paths()) {
      for (PathCase c : cases(path)) {
        try {
          Measurement m = measure(c);
          results.add(m);
          listener.measured(m);
        } catch (StorageException | NvmeException | InvalidRequestException e) {
          listener.skipped(id(c), String.valueOf(e.getMessage()));
        }
      }
    }
    // A disk shared with others changes its mind: the same again shows by how much.
    try {
      Measurement again =
          ceiling
              .measure(DiskCeiling.SEQUENTIAL, options.repetitions())
              .named(DiskCeiling.AFTERWARDS);
      limits.put(DiskCeiling.AFTERWARDS, again);
      listener.measured(again);
    } catch (BenchException e) {
      listener.skipped(DiskCeiling.AFTERWARDS, String.valueOf(e.getMessage()));
    }
    List<Measurement> all = new ArrayList<>(limits.values());
    all.addAll(new PathComparison(limits, results).compared());
    return all;
  }

  private int coldReads() {
    return options.randomReads() / COLD_SHARE;
  }

  private List<PathCase> cases(String path) {
    List<PathCase> all = new ArrayList<>();
    for (boolean warm : new boolean[] {false, true}) {
      all.add(new PathCase(path, false, warm, MEBIBYTE));
      if (!path.equals(AUTO)) {
        options.blocks().stream()
            .filter(b -> b != MEBIBYTE)
            .forEach(b -> all.add(new PathCase(path, false, warm, b)));
      }
      all.add(new PathCase(path, true, warm, PathFile.BLOCK));
    }
    return all;
  }

  /** Reads of 1 MiB are the result; those of other sizes are its sweep. */
  private String id(PathCase c) {
    return isSweep(c) ? c.sweepId() : c.id();
  }

  private static boolean isSweep(PathCase c) {
    return !c.random() && c.block() != MEBIBYTE;
  }

  /** Enough to draw a line. */
  private Repetitions repetitions(PathCase c) {
    return isSweep(c)
        ? Repetitions.of(Math.min(2, options.repetitions().least()))
        : options.repetitions();
  }

  private Measurement measure(PathCase c) {
    if (!c.path().equals(PathKind.CUFILE.toString())) {
      boolean pinned = c.path().equals(PathKind.PINNED.toString());
      return measure(c, pinned && isSweep(c) ? "&chunk=" + chunk(c) : "", 1);
    }
    // cuFile has no opinion on the number of threads; it gets the best of several, which other
    // block sizes keep.
    List<Integer> numbers = isSweep(c) ? List.of(bestThreads) : options.cufileThreads();
    Measurement best = null;
    Map<String, Object> sweep = new LinkedHashMap<>();
    for (int threads : numbers) {
      Measurement m = measure(c, "&threads=%d&chunk=%d".formatted(threads, chunk(c)), threads);
      sweep.put(Integer.toString(threads), m.median());
      if (best == null || m.median() > best.median()) {
        best = m;
        bestThreads = c.random() ? bestThreads : threads;
      }
    }
    if (best == null) {
      throw new BenchException("there are no thread counts to try for cuFile");
    }
    Map<String, Object> conditions = new LinkedHashMap<>(best.conditions());
    conditions.put("median_by_threads", sweep);
    return best.under(conditions);
  }

  private static int chunk(PathCase c) {
    return c.random() ? MEBIBYTE : c.block();
  }

  private boolean isDirect(PathCase c) {
    return c.path().equals(PathKind.DIRECT.toString());
  }

  private GpuStorage open(PathCase c, String more) {
    if (!isDirect(c)) {
      String address = "file:%s?path=%s%s".formatted(file.path(), c.path(), more);
      return GpuStorage.open(address, accelerator);
    }
    String name = file.path().toString().replace("\\", "\\\\").replace(",", "\\,");
    String address =
        "sim:file=%s,media=mapped,lba=%d,workers=%d,dstrd=%d"
            .formatted(name, PathFile.BLOCK, options.workers(), DOORBELL_STRIDE);
    InitiatorOptions initiator = InitiatorOptions.defaults();
    if (accelerator.gpu()) {
      initiator =
          initiator
              .with(InitiatorKind.GPU, c.random() ? Placement.HOST : Placement.VRAM_DATA)
              .with(queues(c), c.random() ? RANDOM_DEPTH : 0, 0);
    }
    return GpuStorage.open(
        StorageAddress.parse(address), accelerator, StorageOptions.defaults().with(initiator));
  }

  /** Each has a warp and a multiprocessor of its own. */
  private static int queues(PathCase c) {
    return c.random() ? RANDOM_QUEUES : LONG_READ_QUEUES;
  }

  private Measurement measure(PathCase c, String more, int threads) {
    DeviceBuffer buffer = isDirect(c) && c.random() ? pinned : target;
    int reads = c.random() ? (c.warm() ? options.randomReads() : coldReads()) : 0;
    long[] offsets = c.random() ? randomOffsets(reads) : allOffsets();
    List<Range> ranges = c.random() ? blocks(offsets, buffer) : pieces(c.block(), buffer);
    Times times = new Times(threads);
    long bytes = ranges.stream().mapToLong(Range::length).sum();
    listener.begins(id(c), bytes * (repetitions(c).least() + 1));
    List<Double> beside = new ArrayList<>();
    double[] samples;
    try (Reopened storage = new Reopened(c, more)) {
      samples =
          repetitions(c)
              .samples(
                  () -> {
                    besides(c, beside);
                    return read(c, storage.prepared(times), ranges, offsets, buffer, times);
                  });
    }
    PathStats stats = times.stats;
    if (stats == null) {
      throw new IllegalStateException("nothing was read");
    }
    Measurement m =
        Measurement.of(id(c), c.unit(), samples, conditions(c, ranges.size(), stats, times));
    return beside.isEmpty() ? m : m.limitedBy(besideOf(beside));
  }

  /**
   * What the disk can do now: one that is shared with others changes its mind from minute to
   * minute.
   */
  private void besides(PathCase c, List<Double> beside) {
    if (limits.containsKey(DiskCeiling.SEQUENTIAL) && !c.warm() && !c.random() && !isSweep(c)) {
      beside.add(ceiling.again());
    }
  }

  /** Without the first, as of all samples. */
  private static Measurement besideOf(List<Double> beside) {
    double[] samples = beside.stream().skip(1).mapToDouble(d -> d).toArray();
    return Measurement.of(DiskCeiling.BESIDE, "GB/s", samples, Map.of());
  }

  /** What the repetitions add up. */
  private static final class Times {
    private final int threads;
    private double process;
    private double controller;
    private double gigabytes;
    private double resident;
    private @Nullable TransferResult last;
    private @Nullable PathStats stats;

    Times(int threads) {
      this.threads = threads;
    }
  }

  private boolean isMapped(PathCase c) {
    return isDirect(c) || c.path().equals(PathKind.MMAP.toString());
  }

  /** The storage, opened again where a mapping would keep a cold file's pages. */
  private final class Reopened implements AutoCloseable {
    private final PathCase wanted;
    private final String more;
    private @Nullable GpuStorage open;

    Reopened(PathCase wanted, String more) {
      this.wanted = wanted;
      this.more = more;
    }

    /** The storage, and the page cache as the case wants it. */
    GpuStorage prepared(Times times) {
      // A warm file stays mapped, as other paths keep theirs open: finding its pages anew each time
      // would be measured, and not reading them.
      if (isMapped(wanted) && !wanted.warm()) {
        close();
      }
      times.resident = prepare(wanted);
      if (!wanted.warm() && times.resident > COLD && open != null) {
        close();
        times.resident = prepare(wanted);
      }
      if (!wanted.warm() && times.resident > COLD) {
        throw new StorageException(
            Kind.UNSUPPORTED,
            file.path().toString(),
            -1,
            -1,
            "%.0f %% of it stays in the page cache (%s)"
                .formatted(100 * times.resident, file.source().fileSystem()),
            null);
      }
      GpuStorage there = open;
      if (there == null) {
        there = PathBench.this.open(wanted, more);
        open = there;
      }
      return there;
    }

    @Override
    public void close() {
      GpuStorage there = open;
      open = null;
      if (there != null) {
        there.close();
      }
    }
  }

  /** Share of the file that the page cache then holds. */
  private double prepare(PathCase c) {
    if (c.warm()) {
      file.warm();
    } else {
      file.cool();
    }
    return file.resident();
  }

  private double read(
      PathCase c,
      GpuStorage storage,
      List<Range> ranges,
      long[] offsets,
      DeviceBuffer buffer,
      Times times) {
    clear(buffer);
    double process = ProcessorTime.all();
    double controller = ProcessorTime.threads(WORKERS);
    TransferResult result = storage.read(ranges);
    double byController = ProcessorTime.threads(WORKERS) - controller;
    times.process += ProcessorTime.all() - process - byController;
    times.controller += byController;
    times.gigabytes += result.bytes() / NANOS_PER_SECOND;
    times.last = result;
    times.stats = storage.stats().get(result.path());
    PathFile.check(c.id(), buffer, pinned, offsets);
    listener.moved(result.bytes());
    return c.random()
        ? ranges.size() * NANOS_PER_SECOND / result.nanos()
        : result.gigabytesPerSecond();
  }

  private void clear(DeviceBuffer buffer) {
    if (buffer.isHost()) {
      buffer.segment().fill((byte) 0);
    } else {
      accelerator.cuda().ifPresent(gpu -> clear(gpu, buffer));
    }
  }

  private static void clear(GpuAccelerator gpu, DeviceBuffer buffer) {
    try (CudaStream stream = gpu.context().stream()) {
      stream.fillAsync(buffer.deviceAddress(), (byte) 0, buffer.size());
      stream.synchronize();
    }
  }

  private Map<String, Object> conditions(PathCase c, int ranges, PathStats stats, Times times) {
    Map<String, Object> all = new LinkedHashMap<>();
    TransferResult last = times.last;
    all.put("path", last == null ? "" : last.path().toString());
    all.put("mode", last == null ? "" : last.mode());
    all.put("block_bytes", c.block());
    all.put("ranges", ranges);
    all.put("threads", times.threads);
    all.put("file_bytes", options.fileBytes());
    all.put("resident_before", times.resident);
    all.put("cpu_seconds_per_gb", times.process / times.gigabytes);
    if (isDirect(c)) {
      all.put("controller_cpu_seconds_per_gb", times.controller / times.gigabytes);
      all.put("controller_threads", options.workers());
      all.put("sms", accelerator.gpu() ? queues(c) : 0);
    } else {
      all.put("sms", 0);
    }
    all.put("operations", stats.operations());
    all.put("staged_bytes", stats.stagedBytes());
    all.put("latency_ns", percentiles(stats.latency()));
    all.put("latency_mean_ns", stats.latency().getMean());
    all.put("accelerator", accelerator.name());
    all.put("gpu", accelerator.gpu());
    return all;
  }

  private static Map<String, Object> percentiles(Histogram latency) {
    Map<String, Object> all = new LinkedHashMap<>();
    for (double p : new double[] {50, 90, 99, 99.9}) {
      String name = p == (long) p ? Long.toString((long) p) : Double.toString(p);
      all.put("p" + name, latency.getValueAtPercentile(p));
    }
    all.put("max", latency.getMaxValue());
    return all;
  }

  private long[] allOffsets() {
    long[] offsets = new long[(int) (options.fileBytes() / PathFile.BLOCK)];
    for (int i = 0; i < offsets.length; i++) {
      offsets[i] = (long) i * PathFile.BLOCK;
    }
    return offsets;
  }

  private long[] randomOffsets(int reads) {
    long blocks = options.fileBytes() / PathFile.BLOCK;
    long[] offsets = new long[reads];
    for (int i = 0; i < reads; i++) {
      offsets[i] = Long.remainderUnsigned(BlockPattern.hash(i), blocks) * PathFile.BLOCK;
    }
    return offsets;
  }

  private static List<Range> blocks(long[] offsets, DeviceBuffer buffer) {
    List<Range> ranges = new ArrayList<>(offsets.length);
    for (int i = 0; i < offsets.length; i++) {
      ranges.add(new Range(offsets[i], buffer, (long) i * PathFile.BLOCK, PathFile.BLOCK));
    }
    return ranges;
  }

  private List<Range> pieces(int block, DeviceBuffer buffer) {
    List<Range> ranges = new ArrayList<>();
    for (long at = 0; at < options.fileBytes(); at += block) {
      ranges.add(new Range(at, buffer, at, Math.min(block, options.fileBytes() - at)));
    }
    return ranges;
  }

  /** Removes the file. */
  @Override
  public void close() {
    target.close();
    pinned.close();
    file.close();
  }
}
