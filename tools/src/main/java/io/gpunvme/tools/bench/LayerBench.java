package io.gpunvme.tools.bench;

import static io.gpunvme.gpu.queue.DeviceLayout.getLong;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaFunction;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.HostMemoryKind;
import io.gpunvme.gpu.accel.HostWindow;
import io.gpunvme.gpu.queue.GpuModule;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.storage.layer.Layer;
import io.gpunvme.storage.layer.LayerLoader;
import io.gpunvme.storage.layer.LoadedLayer;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Layers from an embedded SSD in pinned memory, read by a kernel, while another kernel works with
 * the layer before: the time of all beside the time of the reads alone and of the work alone, in
 * the same repetition. The work looks at every word. For one thread.
 */
final class LayerBench implements AutoCloseable {
  /** In {@code reads.cu}. */
  static final String KERNEL = "gpunvme_bench_layer";

  /** Results, and how long the work with a layer is, in times of its read. */
  static final Map<String, Double> CASES = cases();

  private static final int LAYERS = 64;
  private static final long LAYER_BYTES = 64L << 20;
  private static final int SLOTS = 4;
  private static final int BLOCK_SIZE = 4096;

  /** Fewer blocks than a GPU has multiprocessors: reads need some. */
  private static final int KERNEL_BLOCKS = 48;

  private static final int KERNEL_THREADS = 256;
  private static final double TOLERANCE = 1.05;

  private final GpuAccelerator accelerator;
  private final int workers;
  private final int queuePairs;
  private final int depth;
  private final List<Layer> layers = new ArrayList<>();
  private final List<AutoCloseable> open = new ArrayList<>();
  private final BenchDevice device;
  private final LayerLoader loader;
  private final CudaFunction kernel;
  private final CudaStream stream;
  private final DeviceBuffer wrong;

  /**
   * @param workers threads of the controller
   * @param queuePairs of the reading kernel
   * @param depth commands in flight per queue pair
   */
  LayerBench(GpuAccelerator accelerator, int workers, int queuePairs, int depth) {
    this.accelerator = accelerator;
    this.workers = workers;
    this.queuePairs = queuePairs;
    this.depth = depth;
    for (int i = 0; i < LAYERS; i++) {
      layers.add(new Layer("layer " + i, i * LAYER_BYTES, LAYER_BYTES));
    }
    try {
      device = kept(new BenchDevice(LAYERS * LAYER_BYTES, BLOCK_SIZE, workers));
      BlockPattern.hashWords(device.medium());
      HostWindow pinned = accelerator.mapHost(device.medium(), HostMemoryKind.MEMORY);
      open.add(pinned);
      kernel = kept(GpuModule.resource(accelerator, "reads")).function(KERNEL);
      stream = kept(accelerator.context().stream());
      wrong = kept(accelerator.allocate(Long.BYTES));
      GpuStorage storage =
          kept(
              GpuStorage.over(
                  device.controller(), accelerator, StorageOptions.defaults().with(gpu())));
      loader = kept(LayerLoader.open(storage, LAYER_BYTES, SLOTS));
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

  private InitiatorOptions gpu() {
    return InitiatorOptions.defaults()
        .with(InitiatorKind.GPU, Placement.VRAM_DATA)
        .with(queuePairs, depth, 0);
  }

  private <T extends AutoCloseable> T kept(T part) {
    open.add(part);
    return part;
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
    double goal() {
      return TOLERANCE + (double) loads / LAYERS / longest();
    }
  }

  /**
   * The time of reads and work together, in times of the longer of the two alone.
   *
   * @param id one of {@link #CASES}
   * @throws BenchException if a layer was not what the SSD has, or the CPU asked for it
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
    long byCpu = device.commandsByCpu();
    clearWrong();
    long loads = loads();
    long nanos = (long) (factor * loads / LAYERS);
    long work = work(nanos);
    long both = both(nanos);
    device.requireNoneByCpu(id, byCpu);
    long count = wrong();
    if (count != 0) {
      throw new BenchException("%s: %d words differ from those on the SSD".formatted(id, count));
    }
    return new Times(loads, work, both);
  }

  private long loads() {
    long begin = System.nanoTime();
    loader.prefetch(layers);
    for (int i = 0; i < LAYERS; i++) {
      loader.next().close();
    }
    return System.nanoTime() - begin;
  }

  private long work(long nanos) {
    loader.prefetch(layers.subList(0, 1));
    try (LoadedLayer layer = loader.next()) {
      long begin = System.nanoTime();
      for (int i = 0; i < LAYERS; i++) {
        launch(layer, nanos);
      }
      stream.synchronize();
      return System.nanoTime() - begin;
    }
  }

  private long both(long nanos) {
    long begin = System.nanoTime();
    loader.prefetch(layers);
    for (int i = 0; i < LAYERS; i++) {
      LoadedLayer layer = loader.next(stream);
      launch(layer, nanos);
      layer.release(stream);
    }
    stream.synchronize();
    long all = System.nanoTime() - begin;
    loader.awaitTaken();
    return all;
  }

  private void launch(LoadedLayer loaded, long nanos) {
    stream.launch(
        kernel,
        LaunchShape.of(KERNEL_BLOCKS, KERNEL_THREADS),
        new KernelArguments()
            .addLong(loaded.deviceAddress())
            .addLong(LAYER_BYTES / Long.BYTES)
            .addLong(loaded.layer().offset() / Long.BYTES)
            .addLong(nanos)
            .addLong(wrong.deviceAddress()));
  }

  private void clearWrong() {
    stream.fillAsync(wrong.deviceAddress(), (byte) 0, Long.BYTES);
    stream.synchronize();
  }

  private long wrong() {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment count = arena.allocate(Long.BYTES, Long.BYTES);
      wrong.copyToHost(0, count);
      return getLong(count, 0);
    }
  }

  private Map<String, Object> conditions(double factor, List<Times> all) {
    List<Times> sorted = new ArrayList<>(all);
    sorted.sort((a, b) -> Double.compare(a.ratio(), b.ratio()));
    Times middle = sorted.get(sorted.size() / 2);
    Map<String, Object> conditions = new LinkedHashMap<>();
    conditions.put("work_per_read", factor);
    conditions.put("layers", LAYERS);
    conditions.put("layer_bytes", LAYER_BYTES);
    conditions.put("slots", SLOTS);
    conditions.put("gpu_bytes", loader.gpuBytes());
    conditions.put("pinned_bytes", loader.pinnedBytes());
    conditions.put("reads_alone_ns", middle.loads());
    conditions.put("work_alone_ns", middle.work());
    conditions.put("together_ns", middle.all());
    conditions.put("reads_alone_gb_s", (double) LAYERS * LAYER_BYTES / middle.loads());
    boolean met = middle.ratio() <= middle.goal();
    conditions.put(
        "goal",
        String.format(Locale.ROOT, "at most %.3f: %s", middle.goal(), met ? "met" : "missed"));
    conditions.put("placement", Placement.VRAM_DATA.toString());
    conditions.put("queue_pairs", queuePairs);
    conditions.put("depth", depth);
    conditions.put("controller_threads", workers);
    conditions.put("kernel_blocks", KERNEL_BLOCKS);
    conditions.put("accelerator", accelerator.name());
    return conditions;
  }

  @Override
  public void close() {
    CloseAll.newestFirst(open);
  }
}
