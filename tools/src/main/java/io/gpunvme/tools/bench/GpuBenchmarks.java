package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SequencedMap;
import java.util.function.Supplier;

/**
 * All benchmarks of a GPU, by the names of their results, and the same with other numbers. For one
 * thread; nothing else should run on the machine meanwhile.
 */
public final class GpuBenchmarks implements AutoCloseable {
  /** Threads of the controller, as many as the goal for random reads names. */
  private static final int RANDOM_WORKERS = 12;

  private static final int STREAM_WORKERS = 4;

  /** Processors that are left to the rest of the machine. */
  private static final int SPARE_PROCESSORS = 2;

  private static final long SSD_BYTES = 1L << 30;
  private static final long STREAM_BYTES = 2L << 30;
  private static final long TENSOR_BYTES = 1L << 30;

  /** Of each set, and of each of its copies. */
  private static final long SET_BYTES = 512L << 20;

  private static final int GRAPH_SCALE = 22;
  private static final int RANDOM_QUEUES = 48;

  /** Commands in flight for 20 million a second, and a buffer that the processors' caches hold. */
  private static final int RANDOM_DEPTH = 64;

  private static final long RANDOM_COMMANDS = 2_000_000;

  /** Where a CUDA copy moves each block. */
  private static final long RANDOM_COMMANDS_BY_COPY = 50_000;

  private static final int STREAM_QUEUES = 2;
  private static final int STREAM_DEPTH = 64;

  private final GpuAccelerator accelerator;
  private final BenchKernels reads;
  private final QueueBench queues;
  private final Map<String, Measurement> limits = new HashMap<>();
  private final List<AutoCloseable> devices = new ArrayList<>();
  private int randomBlock;

  private GpuBenchmarks(GpuAccelerator accelerator, BenchKernels reads, QueueBench queues) {
    this.accelerator = accelerator;
    this.reads = reads;
    this.queues = queues;
  }

  /** Random reads from an SSD in another process. */
  private static final String SERVED = "random.4k.served";

  /**
   * Loads the kernels.
   *
   * @param accelerator stays the caller's
   */
  public static GpuBenchmarks open(GpuAccelerator accelerator) {
    BenchKernels reads =
        CudaBenchKernels.load(accelerator, "reads", List.of(RandomBench.KERNEL, GpuWords.CHECK));
    return CloseAll.orClose(
        () -> new GpuBenchmarks(accelerator, reads, QueueBench.open(accelerator, threads())),
        reads::close);
  }

  private static int threads() {
    return Math.max(1, Runtime.getRuntime().availableProcessors() - SPARE_PROCESSORS);
  }

  private static int workers(int most) {
    return Math.clamp(Runtime.getRuntime().availableProcessors() - SPARE_PROCESSORS, 1, most);
  }

  /** The names of all results, in the order in which they are best taken. */
  public static List<String> ids() {
    List<String> ids = new ArrayList<>();
    ids.add(StreamBench.CEILING);
    ids.add("stream.1m.vram-data");
    ids.add("stream.1m.vram");
    ids.addAll(WeightBench.ids());
    ids.addAll(LayerBench.CASES.keySet());
    ids.add("ceiling.copy.4k");
    ids.add("random.4k.host");
    ids.add(SERVED);
    ids.add("ceiling.copy.512");
    ids.add("random.512.host");
    ids.addAll(TensorBench.ids());
    ids.addAll(ShortReadBench.ids());
    ids.addAll(SetBench.ids());
    ids.addAll(CacheBench.ids());
    ids.addAll(GraphBench.ids());
    ids.add(RoundTrip.ID);
    queueCases().forEach((id, c) -> ids.add(id));
    return ids;
  }

  private static SequencedMap<String, QueueCase> queueCases() {
    SequencedMap<String, QueueCase> cases = new LinkedHashMap<>();
    for (boolean vram : new boolean[] {false, true}) {
      for (BenchKernel kernel : BenchKernel.values()) {
        if (kernel.latency()) {
          QueueCase c = QueueCases.latency(vram, kernel);
          cases.put(c.id(), c);
        }
      }
    }
    QueueCases.throughput().forEach(c -> cases.put(c.id(), c));
    QueueCase billion = QueueCases.billion();
    cases.put(billion.id(), billion);
    return cases;
  }

  /**
   * Takes one result.
   *
   * @param id one of {@link #ids}
   * @throws BenchException if a count or data was wrong
   */
  public Measurement run(String id, Repetitions repetitions) {
    return switch (id) {
      case StreamBench.CEILING -> limit(id, () -> stream().ceiling(repetitions));
      case "stream.1m.vram-data" -> stream(id, Placement.VRAM_DATA, repetitions);
      case "stream.1m.vram" -> stream(id, Placement.VRAM, repetitions);
      case WeightBench.ALL, WeightBench.RANK -> weights(id, repetitions);
      case "layers.short", "layers.equal", "layers.long" -> layers().measure(id, repetitions);
      case "ceiling.copy.4k" -> copies(id, 4096, repetitions);
      case "ceiling.copy.512" -> copies(id, 512, repetitions);
      case "random.4k.host" -> random(id, 4096, repetitions);
      case SERVED -> served(repetitions);
      case "random.512.host" -> random(id, 512, repetitions);
      case RoundTrip.ID -> limit(id, () -> queues.roundTrip(repetitions));
      case ShortReadBench.LIMIT -> limit(id, () -> shortReads().measure(id, repetitions));
      case ShortReadBench.ALONE, ShortReadBench.BESIDE, ShortReadBench.CROWD ->
          shortReads(id, repetitions);
      case TensorBench.LIMIT -> limit(id, () -> tensors().measure(id, repetitions));
      default -> ofMany(id, repetitions);
    };
  }

  /** Of those that have many results. */
  private Measurement ofMany(String id, Repetitions repetitions) {
    if (id.startsWith(TensorBench.PREFIX)) {
      return tensors(id, repetitions);
    }
    if (id.startsWith(SetBench.PREFIX)) {
      return sets(id, repetitions);
    }
    if (id.startsWith(CacheBench.PREFIX)) {
      return caches(id, repetitions);
    }
    return id.startsWith(GraphBench.PREFIX) ? graphs(id, repetitions) : queue(id, repetitions);
  }

  private Measurement queue(String id, Repetitions repetitions) {
    QueueCase c = queueCases().get(id);
    if (c == null) {
      throw unknown(id);
    }
    if (!c.kernel().latency()) {
      // Every one of the billion counts, so no more of them are needed.
      return queues.throughput(c, id.endsWith(".billion") ? Repetitions.of(1) : repetitions);
    }
    Measurement latency = queues.latency(c, repetitions);
    return c.shape().vram() ? latency : besides(latency, RoundTrip.ID);
  }

  private Measurement weights(String id, Repetitions repetitions) {
    Measurement result = weights().measure(id, repetitions);
    return id.equals(WeightBench.ALL) ? besides(result, StreamBench.CEILING) : result;
  }

  private Measurement sets(String id, Repetitions repetitions) {
    if (!SetBench.ids().contains(id)) {
      throw unknown(id);
    }
    return id.equals(SetBench.LIMIT)
        ? limit(id, () -> sets().limit(accelerator, repetitions))
        : besides(sets().measure(id, repetitions), SetBench.LIMIT);
  }

  private Measurement caches(String id, Repetitions repetitions) {
    if (!CacheBench.ids().contains(id)) {
      throw unknown(id);
    }
    return besides(
        limit(
            id,
            () ->
                CacheBench.isTiered(id)
                    ? tiers().measure(id, repetitions)
                    : caches().measure(id, repetitions)),
        CacheBench.limit(id));
  }

  private Measurement graphs(String id, Repetitions repetitions) {
    if (!GraphBench.ids().contains(id)) {
      throw unknown(id);
    }
    return besides(limit(id, () -> graphs().measure(id, repetitions)), GraphBench.limit(id));
  }

  private Measurement tensors(String id, Repetitions repetitions) {
    if (!TensorBench.ids().contains(id)) {
      throw unknown(id);
    }
    return besides(tensors().measure(id, repetitions), TensorBench.LIMIT);
  }

  private Measurement shortReads(String id, Repetitions repetitions) {
    Measurement result = shortReads().measure(id, repetitions);
    return id.equals(ShortReadBench.CROWD) ? result : besides(result, ShortReadBench.LIMIT);
  }

  private static InvalidRequestException unknown(String id) {
    return new InvalidRequestException("there is no benchmark '" + id + "'");
  }

  private Measurement stream(String id, Placement placement, Repetitions repetitions) {
    Measurement rate = stream().measure(id, placement, STREAM_QUEUES, STREAM_DEPTH, repetitions);
    return besides(rate, StreamBench.CEILING);
  }

  private Measurement random(String id, int block, Repetitions repetitions) {
    Measurement rate =
        random(block)
            .measure(id, Placement.HOST, RANDOM_QUEUES, RANDOM_DEPTH, RANDOM_COMMANDS, repetitions);
    return besides(rate, id.replace("random.", "ceiling.copy.").replace(".host", ""));
  }

  private Measurement served(Repetitions repetitions) {
    closeDevices();
    int workers = workers(RANDOM_WORKERS);
    try (RandomBench ssd = RandomBench.served(accelerator, reads, SSD_BYTES, 4096, workers)) {
      Measurement rate =
          ssd.measure(
              SERVED, Placement.HOST, RANDOM_QUEUES, RANDOM_DEPTH, RANDOM_COMMANDS, repetitions);
      return besides(rate, "ceiling.copy.4k");
    }
  }

  private Measurement copies(String id, int block, Repetitions repetitions) {
    RandomBench ssd = random(block);
    return limit(
        id, () -> ssd.ceiling(id, RANDOM_QUEUES, RANDOM_DEPTH, RANDOM_COMMANDS, repetitions));
  }

  private Measurement limit(String id, Supplier<Measurement> measure) {
    Measurement result = measure.get();
    limits.put(id, result);
    return result;
  }

  private Measurement besides(Measurement result, String limit) {
    Measurement known = limits.get(limit);
    return known == null ? result : result.limitedBy(known);
  }

  // ---- with other numbers; 0 stands for what the results above have

  /**
   * Commands per second through queues without a controller.
   *
   * @param vram queues in GPU memory, else in host memory
   * @param warps that share the queues; 0: each queue has a warp of its own
   */
  public Measurement queue(
      boolean vram, int queuePairs, int depth, int warps, Repetitions repetitions) {
    int pairs = queuePairs == 0 ? RANDOM_QUEUES : queuePairs;
    int perQueue = depth == 0 ? QueueCases.DEPTH : depth;
    boolean shared = warps != 0;
    String id =
        "queue.%s.%s.qp%d"
            .formatted(vram ? "vram" : "host", shared ? "shared" : "exclusive", pairs);
    long total = QueueCases.total(vram, shared, pairs);
    QueueCase c =
        shared
            ? QueueCase.shared(
                id,
                BenchKernel.SHARED,
                new QueueShape(vram, true, pairs, perQueue),
                warps,
                QueueCases.WARP,
                Arrival.TOGETHER,
                total)
            : QueueCase.exclusive(id, vram, pairs, perQueue, total);
    return queues.throughput(c, repetitions);
  }

  /** What one command takes, beside the bare round trip where the queues are in host memory. */
  public Measurement latency(boolean vram, boolean shared, Repetitions repetitions) {
    BenchKernel kernel = shared ? BenchKernel.SHARED_QD1 : BenchKernel.EXCLUSIVE_QD1;
    return run(QueueCases.latency(vram, kernel).id(), repetitions);
  }

  /** What a bare exchange of words between GPU and CPU takes. */
  public Measurement roundTrip(Repetitions repetitions) {
    return run(RoundTrip.ID, repetitions);
  }

  /** The most that a stream can be: plain copies from pinned memory to the GPU. */
  public Measurement ceiling(Repetitions repetitions) {
    return run(StreamBench.CEILING, repetitions);
  }

  /** Random reads of one block each; {@code block} is 512 or 4096 bytes. */
  public Measurement random(
      Placement placement, int block, int queuePairs, int depth, Repetitions repetitions) {
    String id = "random." + (block == 4096 ? "4k" : Integer.toString(block)) + "." + placement;
    return random(block)
        .measure(
            id,
            placement,
            queuePairs == 0 ? RANDOM_QUEUES : queuePairs,
            depth == 0 ? RANDOM_DEPTH : depth,
            placement.hostData() ? RANDOM_COMMANDS : RANDOM_COMMANDS_BY_COPY,
            repetitions);
  }

  /** Reads of 1 MiB. */
  public Measurement stream(
      Placement placement, int queuePairs, int depth, Repetitions repetitions) {
    Measurement rate =
        stream()
            .measure(
                "stream.1m." + placement,
                placement,
                queuePairs == 0 ? STREAM_QUEUES : queuePairs,
                depth == 0 ? STREAM_DEPTH : depth,
                repetitions);
    return besides(rate, StreamBench.CEILING);
  }

  /** Layers beside work with them; the work takes half as long as a read, as long, and twice. */
  public List<Measurement> layers(Repetitions repetitions) {
    return LayerBench.CASES.keySet().stream().map(id -> run(id, repetitions)).toList();
  }

  // ---- the SSDs and matrices, made when they are needed; one at a time, for they are large

  private RandomBench random(int block) {
    if (randomBlock != block) {
      closeDevices();
    }
    RandomBench there =
        device(
            RandomBench.class,
            () -> new RandomBench(accelerator, reads, SSD_BYTES, block, workers(RANDOM_WORKERS)));
    randomBlock = block;
    return there;
  }

  private StreamBench stream() {
    return device(
        StreamBench.class,
        () -> new StreamBench(accelerator, reads, STREAM_BYTES, workers(STREAM_WORKERS)));
  }

  private ShortReadBench shortReads() {
    return device(
        ShortReadBench.class,
        () -> new ShortReadBench(accelerator, SSD_BYTES, workers(STREAM_WORKERS)));
  }

  private SetBench sets() {
    return device(
        SetBench.class,
        () ->
            new SetBench(
                accelerator, new GpuWords(accelerator, reads), InitiatorKind.GPU, SET_BYTES));
  }

  private TierBench tiers() {
    return device(TierBench.class, () -> new TierBench(accelerator, workers(STREAM_WORKERS)));
  }

  private CacheBench caches() {
    return device(
        CacheBench.class, () -> new CacheBench(accelerator, SSD_BYTES, workers(RANDOM_WORKERS)));
  }

  private GraphBench graphs() {
    return device(
        GraphBench.class,
        () -> new GraphBench(accelerator, GRAPH_SCALE, workers(RANDOM_WORKERS), 0));
  }

  private TensorBench tensors() {
    return device(TensorBench.class, () -> new TensorBench(accelerator, reads, TENSOR_BYTES));
  }

  private LayerBench.Embedded layers() {
    return device(
        LayerBench.Embedded.class,
        () ->
            new LayerBench.Embedded(
                accelerator, workers(STREAM_WORKERS), STREAM_QUEUES, STREAM_DEPTH));
  }

  /** A thread for each SSD: as many in all as one SSD has in the other results. */
  private WeightBench weights() {
    return device(
        WeightBench.class, () -> new WeightBench(accelerator, 1, STREAM_QUEUES, STREAM_DEPTH));
  }

  private <T extends AutoCloseable> T device(Class<T> kind, Supplier<T> make) {
    if (!devices.isEmpty() && kind.isInstance(devices.getFirst())) {
      return kind.cast(devices.getFirst());
    }
    closeDevices();
    T made = make.get();
    devices.add(made);
    return made;
  }

  private void closeDevices() {
    CloseAll.newestFirst(devices);
  }

  @Override
  public void close() {
    closeDevices();
    queues.close();
    reads.close();
  }
}
