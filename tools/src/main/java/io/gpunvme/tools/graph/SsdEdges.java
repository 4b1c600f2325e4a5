package io.gpunvme.tools.graph;

import io.gpunvme.base.CloseAll;
import io.gpunvme.gpu.queue.DeviceArray;
import io.gpunvme.gpu.queue.DeviceError;
import io.gpunvme.gpu.queue.KernelStorage;
import io.gpunvme.gpu.queue.KernelStorageOptions;
import io.gpunvme.gpu.queue.PageCache;
import io.gpunvme.gpu.queue.PageCacheOptions;
import io.gpunvme.gpu.queue.RunningKernel;
import io.gpunvme.tools.ssd.KernelFailures;
import java.time.Duration;
import java.util.Optional;

/** Arrays on the SSD. */
final class SsdEdges implements EdgeMemory {
  /** Of one kernel, which may read all edges of a disk. */
  private static final Duration LIMIT = Duration.ofMinutes(30);

  /** For a page while others hold all frames in which it can be. */
  private static final Duration FRAME_LIMIT = Duration.ofSeconds(10);

  private final GraphReader graph;
  private final GraphOptions options;
  private final KernelStorage storage;
  private final PageCache cache;
  private final long edges;
  private final long weights;

  SsdEdges(GraphReader graph, GraphOptions options, boolean weighted) {
    this.graph = graph;
    this.options = options;
    GraphHeader header = graph.header();
    storage =
        graph
            .storage()
            .forKernels(
                KernelStorageOptions.in(options.placement())
                    .with(options.queuePairs(), options.depth()));
    try {
      cache = storage.cache(cacheOptions(header, options, weighted));
      edges = array(header.edgesAt(), Integer.BYTES).deviceAddress();
      weights = weighted ? array(header.weightsAt(), Byte.BYTES).deviceAddress() : 0;
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, storage::close);
      throw e;
    }
  }

  private static PageCacheOptions cacheOptions(
      GraphHeader header, GraphOptions options, boolean weighted) {
    long all = header.edges() * (Integer.BYTES + (weighted ? Byte.BYTES : 0));
    long least = 16L * options.pageBytes();
    long bytes = options.cacheBytes() == 0 ? Math.max(least, all / 4) : options.cacheBytes();
    return PageCacheOptions.of(bytes, options.pageBytes()).withTimeout(FRAME_LIMIT);
  }

  private DeviceArray array(long at, int elementBytes) {
    return graph.storage().arrayForKernels(cache, at, graph.header().edges(), elementBytes, false);
  }

  @Override
  public String suffix() {
    return options.least() ? "_traced" : "";
  }

  @Override
  public long edges() {
    return edges;
  }

  @Override
  public long weights() {
    return weights;
  }

  /** Their kernels need most registers of a multiprocessor. */
  @Override
  public int blocks() {
    return 1;
  }

  /**
   * {@inheritDoc} A frontier whose pages all fit into the cache reads none of them twice, in
   * whichever order.
   */
  @Override
  public long mostPieces() {
    return cache.bytes() / options.pageBytes() / 2;
  }

  @Override
  public void await(RunningKernel kernel) {
    // A kernel that was told to stop may have all it needs: what it says counts.
    storage.await(kernel, LIMIT);
  }

  @Override
  public long bytesRead() {
    return cache.counters().reads() * options.pageBytes();
  }

  @Override
  public RuntimeException readFailed(long edge, int status) {
    Optional<DeviceError> told =
        storage.errors().records().stream().filter(e -> e.status() == status).findFirst();
    return KernelFailures.read(
        status,
        "edge %d of %s".formatted(edge, graph.name()),
        told,
        1,
        told.map(DeviceError::slba).orElse(-1L),
        storage.troubled(),
        LIMIT);
  }

  @Override
  public GraphReport.Reads reads() {
    return new GraphReport.Reads(
        options.placement(),
        cache.counters(),
        cache.bytes(),
        options.pageBytes(),
        storage.queuePairs(),
        storage.depth(),
        -1);
  }

  @Override
  public void close() {
    storage.close();
  }
}
