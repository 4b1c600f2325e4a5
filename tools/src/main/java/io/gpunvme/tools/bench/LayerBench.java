package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.layer.Layer;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LoadedLayer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Layers that are read, while a {@link LayerWork} goes on with the layer before: the time of all
 * beside the time of the reads alone and of the work alone, in the same repetition. For one thread.
 */
final class LayerBench implements AutoCloseable {
  /** Results, and how long the work with a layer is, in times of its read. */
  static final Map<String, Double> CASES = cases();

  /** Layers in memory. */
  static final int SLOTS = 4;

  private static final int EMBEDDED_LAYERS = 64;
  private static final long EMBEDDED_BYTES = 64L << 20;
  private static final int EMBEDDED_BLOCK = 4096;
  private static final double TOLERANCE = 1.05;

  private final List<Layer> layers;
  private final long[] right;
  private final List<AutoCloseable> open = new ArrayList<>();
  private final LayerLoader loader;
  private final LayerWork work;
  private final Map<String, Object> conditions = new LinkedHashMap<>();

  /**
   * Allocates memory for some of the layers.
   *
   * @param storage what is read; stays the caller's
   * @param layers all of the same length
   * @param right the {@link LayerSums sum} of each
   */
  LayerBench(GpuStorage storage, List<Layer> layers, long[] right) {
    this.layers = List.copyOf(layers);
    this.right = right.clone();
    try {
      loader = kept(LayerLoader.open(storage, layers.getFirst().bytes(), SLOTS));
      Accelerator accelerator = storage.accelerator();
      int count = layers.size();
      work =
          kept(
              accelerator
                  .cuda()
                  .<LayerWork>map(gpu -> new GpuLayerWork(gpu, count))
                  .orElseGet(() -> new HostLayerWork(count)));
      conditions.put("layers", count);
      conditions.put("layer_bytes", layers.getFirst().bytes());
      conditions.put("slots", SLOTS);
      conditions.put("accelerator", accelerator.name());
      work.describe(conditions);
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
  }

  private static Map<String, Double> cases() {
    Map<String, Double> all = new LinkedHashMap<>();
    all.put("layers.short", 0.5);
    all.put("layers.equal", 1.0);
    all.put("layers.long", 2.0);
    return all;
  }

  private <T extends AutoCloseable> T kept(T part) {
    open.add(part);
    return part;
  }

  /** So many layers, one after the other. */
  static List<Layer> layers(int count, long bytes, long first) {
    List<Layer> all = new ArrayList<>();
    for (int i = 0; i < count; i++) {
      all.add(new Layer("layer " + i, first + i * bytes, bytes));
    }
    return all;
  }

  /** What one repetition took, ns. */
  private record Times(long loads, long work, long all) {
    double ratio() {
      return (double) all / longest();
    }

    long longest() {
      return Math.max(loads, work);
    }

    /** What the ratio is to be at most: a layer more for the first one, which nothing overlaps. */
    double goal(int layers) {
      return TOLERANCE + (double) loads / layers / longest();
    }
  }

  /**
   * The time of reads and work together, in times of the longer of the two alone.
   *
   * @param id one of {@link #CASES}
   * @throws BenchException if a layer was not what it should be
   * @throws io.gpunvme.storage.layer.LayerException if one cannot be read
   */
  Measurement measure(String id, Repetitions repetitions) {
    double factor = CASES.getOrDefault(id, 1.0);
    List<Times> all = new ArrayList<>();
    double[] samples =
        repetitions.samples(
            () -> {
              Times times = once(id, factor);
              all.add(times);
              return times.ratio();
            });
    // The first one is not counted.
    return Measurement.of(id, "ratio", samples, conditions(factor, all.subList(1, all.size())));
  }

  private Times once(String id, double factor) {
    long loads = loads();
    long nanos = (long) (factor * loads / layers.size());
    long alone = alone(nanos);
    requireRight(id, new long[] {layers.size() * right[0]});
    long both = both(nanos);
    requireRight(id, right);
    return new Times(loads, alone, both);
  }

  private long loads() {
    long begin = System.nanoTime();
    loader.prefetch(layers);
    for (int i = 0; i < layers.size(); i++) {
      loader.next().close();
    }
    return System.nanoTime() - begin;
  }

  private long alone(long nanos) {
    loader.prefetch(layers.subList(0, 1));
    try (LoadedLayer layer = loader.next()) {
      long begin = System.nanoTime();
      for (int i = 0; i < layers.size(); i++) {
        work.with(layer, 0, nanos);
      }
      work.await();
      return System.nanoTime() - begin;
    }
  }

  private long both(long nanos) {
    long begin = System.nanoTime();
    loader.prefetch(layers);
    for (int i = 0; i < layers.size(); i++) {
      LoadedLayer layer = work.next(loader);
      work.with(layer, i, nanos);
      work.release(layer);
    }
    work.await();
    long all = System.nanoTime() - begin;
    loader.awaitTaken();
    return all;
  }

  private void requireRight(String id, long[] expected) {
    int wrong = Arrays.mismatch(Arrays.copyOf(work.takeSums(), expected.length), expected);
    if (wrong >= 0) {
      throw new BenchException(
          "%s: %s has other words than those on the SSD".formatted(id, layers.get(wrong)));
    }
  }

  private Map<String, Object> conditions(double factor, List<Times> all) {
    List<Times> sorted = new ArrayList<>(all);
    sorted.sort((a, b) -> Double.compare(a.ratio(), b.ratio()));
    Times middle = sorted.get(sorted.size() / 2);
    Map<String, Object> own = new LinkedHashMap<>();
    own.put("work_per_read", factor);
    own.putAll(conditions);
    own.put("gpu_bytes", loader.gpuBytes());
    own.put("pinned_bytes", loader.pinnedBytes());
    own.put("reads_alone_ns", middle.loads());
    own.put("work_alone_ns", middle.work());
    own.put("together_ns", middle.all());
    own.put(
        "reads_alone_gb_s", (double) layers.size() * layers.getFirst().bytes() / middle.loads());
    double goal = middle.goal(layers.size());
    own.put(
        "goal",
        String.format(
            Locale.ROOT, "at most %.3f: %s", goal, middle.ratio() <= goal ? "met" : "missed"));
    return own;
  }

  @Override
  public void close() {
    CloseAll.newestFirst(open);
  }

  /** The same of an embedded SSD in pinned memory, read by a kernel. */
  static final class Embedded implements AutoCloseable {
    private final List<AutoCloseable> open = new ArrayList<>();
    private final BenchDevice device;
    private final LayerBench bench;

    /**
     * Makes the SSD.
     *
     * @param workers threads of the controller
     * @param queuePairs of the reading kernel
     * @param depth commands in flight per queue pair
     */
    Embedded(GpuAccelerator gpu, int workers, int queuePairs, int depth) {
      try {
        device = kept(new BenchDevice(EMBEDDED_LAYERS * EMBEDDED_BYTES, EMBEDDED_BLOCK, workers));
        BlockPattern.hashWords(device.medium());
        kept(gpu.mapHost(device.medium(), HostMemoryKind.MEMORY));
        InitiatorOptions how =
            InitiatorOptions.defaults()
                .with(InitiatorKind.GPU, Placement.VRAM_DATA)
                .with(queuePairs, depth, 0);
        GpuStorage storage =
            kept(GpuStorage.over(device.controller(), gpu, StorageOptions.defaults().with(how)));
        List<Layer> layers = layers(EMBEDDED_LAYERS, EMBEDDED_BYTES, 0);
        long words = EMBEDDED_BYTES / Long.BYTES;
        long[] right =
            layers.stream()
                .mapToLong(l -> LayerSums.ofHashedWords(words, l.offset() / Long.BYTES))
                .toArray();
        bench = kept(new LayerBench(storage, layers, right));
        bench.conditions.put("placement", Placement.VRAM_DATA.toString());
        bench.conditions.put("queue_pairs", queuePairs);
        bench.conditions.put("depth", depth);
        bench.conditions.put("controller_threads", workers);
      } catch (RuntimeException | Error e) {
        CloseAll.after(e, this::close);
        throw e;
      }
    }

    private <T extends AutoCloseable> T kept(T part) {
      open.add(part);
      return part;
    }

    /**
     * As {@link LayerBench#measure}.
     *
     * @throws BenchException also if the CPU asked for a layer
     */
    Measurement measure(String id, Repetitions repetitions) {
      long before = device.commandsByCpu();
      Measurement measured = bench.measure(id, repetitions);
      device.requireNoneByCpu(id, before);
      return measured;
    }

    @Override
    public void close() {
      CloseAll.newestFirst(open);
    }
  }
}
