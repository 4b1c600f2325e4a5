package io.gpunvme.tools.bench;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.PageCacheCounters;
import io.gpunvme.gpu.queue.Placement;
import io.gpunvme.gpu.transfer.InitiatorKind;
import io.gpunvme.gpu.transfer.InitiatorOptions;
import io.gpunvme.storage.GpuStorage;
import io.gpunvme.storage.StorageAddress;
import io.gpunvme.storage.StorageOptions;
import io.gpunvme.tools.graph.EdgePlace;
import io.gpunvme.tools.graph.GapEdges;
import io.gpunvme.tools.graph.GraphAlgorithm;
import io.gpunvme.tools.graph.GraphBuilder;
import io.gpunvme.tools.graph.GraphListener;
import io.gpunvme.tools.graph.GraphOptions;
import io.gpunvme.tools.graph.GraphProgram;
import io.gpunvme.tools.graph.GraphReader;
import io.gpunvme.tools.graph.GraphReport;
import io.gpunvme.tools.graph.GraphResult;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Graph programs over a Kronecker graph in a file behind an embedded SSD, with a cache of a quarter
 * of the edges; and the same with all edges in memory. Each result is compared with the CPU's.
 */
final class GraphBench implements AutoCloseable {
  /** All results begin so. */
  static final String PREFIX = "graph.";

  private static final String BY_CPU = ".cpu";
  private static final int DEGREE = 16;
  private static final int QUEUE_PAIRS = 48;
  private static final double NANOS_PER_SECOND = 1e9;

  private final GpuAccelerator accelerator;
  private final int scale;
  private final int workers;
  private final int threads;
  private final Path image;
  private final GpuStorage storage;
  private final GraphReader graph;
  private final Map<GraphAlgorithm, GraphResult> right = new EnumMap<>(GraphAlgorithm.class);

  /**
   * @param scale of 2^scale vertices
   * @param workers threads of the controller
   * @param threads of the GPU; 0: as many as suit it
   */
  GraphBench(GpuAccelerator accelerator, int scale, int workers, int threads) {
    this.accelerator = accelerator;
    this.scale = scale;
    this.workers = workers;
    this.threads = threads;
    try {
      image = Files.createTempFile("gpunvme-graph-", ".image");
      image.toFile().deleteOnExit();
      try (Arena arena = Arena.ofShared();
          FileChannel out = FileChannel.open(image, StandardOpenOption.WRITE)) {
        GraphBuilder.build(
            GapEdges.of(GapEdges.Kind.KRON, scale, DEGREE, GapEdges.SEED, true, arena),
            true,
            out,
            GraphListener.NONE);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    String address =
        "sim:latency=0,readonly=on,lba=4096,workers=%d,file=%s".formatted(workers, image);
    StorageOptions byCpu =
        StorageOptions.defaults()
            .with(InitiatorOptions.defaults().with(InitiatorKind.CPU, Placement.HOST));
    storage = GpuStorage.open(StorageAddress.parse(address), accelerator, byCpu);
    graph = CloseAll.orClose(() -> GraphReader.open(storage), storage::close);
  }

  /** The names of all results; those that others are compared with come first. */
  static List<String> ids() {
    List<String> all = new ArrayList<>();
    for (GraphAlgorithm algorithm : GraphAlgorithm.values()) {
      String id = PREFIX + algorithm;
      all.addAll(List.of(id + BY_CPU, id + ".vram", id + ".host", id));
    }
    return all;
  }

  /** What a result cannot be better than: the same with all edges in GPU memory. */
  static String limit(String id) {
    return id.endsWith(".vram") || id.endsWith(BY_CPU) ? "" : id.replace(".host", "") + ".vram";
  }

  /**
   * Edges that are visited in a second.
   *
   * @param id one of {@link #ids}
   * @throws io.gpunvme.tools.graph.GraphException if a result is not the CPU's
   */
  Measurement measure(String id, Repetitions repetitions) {
    String[] words = id.split("\\.");
    GraphAlgorithm algorithm = GraphAlgorithm.valueOf(words[1].toUpperCase(Locale.ROOT));
    GraphResult byCpu =
        right.computeIfAbsent(
            algorithm, a -> GraphProgram.runByCpu(a, -1, graph, GraphListener.NONE).result());
    if (id.endsWith(BY_CPU)) {
      Map<String, Object> all = conditions(byCpu);
      all.put("threads", 1);
      return Measurement.of(id, "edges/s", new double[] {rate(byCpu)}, all);
    }
    EdgePlace place =
        words.length == 2 ? EdgePlace.SSD : EdgePlace.valueOf(words[2].toUpperCase(Locale.ROOT));
    // Queues and cache are where an embedded SSD is fastest.
    GraphOptions options =
        GraphOptions.in(Placement.HOST).with(place).with(QUEUE_PAIRS, 0, threads);
    GraphReport[] last = new GraphReport[1];
    double[] samples =
        repetitions.samples(
            () -> {
              GraphReport report =
                  GraphProgram.run(algorithm, -1, graph, accelerator, options, GraphListener.NONE);
              report.result().requireSame(byCpu, id);
              last[0] = report;
              return rate(report.result());
            });
    Map<String, Object> all = conditions(last[0].result());
    all.put("edges_in", place.toString());
    GraphReport.Reads reads = last[0].reads();
    if (reads != null) {
      PageCacheCounters counters = reads.counters();
      all.put("placement", reads.placement().toString());
      all.put("cache_bytes", reads.cacheBytes());
      all.put("page_bytes", reads.pageBytes());
      all.put("queue_pairs", reads.queuePairs());
      all.put("controller_threads", workers);
      all.put("acquires", counters.acquires());
      all.put("reads", counters.reads());
      all.put("hit_rate", counters.hitRate());
    }
    return Measurement.of(id, "edges/s", samples, all);
  }

  private static double rate(GraphResult result) {
    return result.edges() / (result.nanos() / NANOS_PER_SECOND);
  }

  private Map<String, Object> conditions(GraphResult result) {
    Map<String, Object> all = new LinkedHashMap<>();
    all.put("scale", scale);
    all.put("edges", graph.header().edges());
    all.put("edges_visited", result.edges());
    all.put("rounds", result.rounds());
    all.put("seconds", result.nanos() / NANOS_PER_SECOND);
    return all;
  }

  @Override
  public void close() {
    CloseAll.all(graph, storage, () -> Files.delete(image));
  }
}
