package io.gpunvme.tools.graph;

import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.tools.graph.GraphLayout.GraphArgs;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Programs over a graph whose edges are on an SSD: a GPU reads those that it visits, through a page
 * cache in its memory. For comparison, a GPU with all edges in memory, and the CPU, do the same.
 */
public final class GraphProgram {
  /**
   * What distances are looked after together. A longer step visits more edges twice, a shorter one
   * has more rounds.
   */
  private static final long STEP = 128;

  /** As an unsigned number: further than any vertex. */
  private static final long NOWHERE = 0xFFFFFFFFL;

  private final GraphKernels kernels;
  private final GraphAlgorithm algorithm;
  private final GraphHeader header;
  private final long source;
  private int rounds;

  private GraphProgram(
      GraphKernels kernels, GraphAlgorithm algorithm, GraphHeader header, long source) {
    this.kernels = kernels;
    this.algorithm = algorithm;
    this.header = header;
    this.source = source;
  }

  /**
   * Runs one on a GPU.
   *
   * @param graph the caller closes it after this
   * @param source where it begins; -1: at the first vertex that has an edge, if it begins somewhere
   * @throws io.gpunvme.base.InvalidRequestException if a number is not possible with this graph or
   *     these SSDs
   * @throws GraphException if the image is damaged
   * @throws io.gpunvme.nvme.NvmeException if an SSD fails
   * @throws io.gpunvme.cuda.CudaException if the GPU's memory is too small
   */
  public static GraphReport run(
      GraphAlgorithm algorithm,
      long source,
      GraphReader graph,
      GpuAccelerator gpu,
      GraphOptions options,
      GraphListener listener) {
    graph.require(algorithm, source);
    boolean weights = algorithm == GraphAlgorithm.SSSP;
    try (GraphKernels kernels = new GraphKernels(gpu, graph, options, weights, listener)) {
      long begin = graph.source(algorithm, source);
      GraphProgram program = new GraphProgram(kernels, algorithm, graph.header(), begin);
      return new GraphReport(
          graph.header(), program.run(), gpu.name(), true, options.place(), kernels.reads());
    }
  }

  /**
   * Runs one on the CPU, which has all of the graph in memory; its time begins when the graph is
   * there.
   *
   * @param source as for {@link #run}
   * @throws io.gpunvme.base.InvalidRequestException if a number is not possible with this graph
   * @throws GraphException if the image is damaged
   */
  public static GraphReport runByCpu(
      GraphAlgorithm algorithm, long source, GraphReader graph, GraphListener listener) {
    graph.require(algorithm, source);
    try (Arena arena = Arena.ofConfined()) {
      MemoryGraph all = graph.load(arena, algorithm == GraphAlgorithm.SSSP, listener);
      listener.begins(algorithm + " by the CPU", graph.header().edges() * Integer.BYTES);
      long begin = graph.source(algorithm, source);
      GraphResult result = CpuPrograms.run(algorithm, begin, all, Arena.ofAuto());
      return new GraphReport(graph.header(), result, "CPU, 1 thread", false, EdgePlace.HOST, null);
    }
  }

  /**
   * Refuses a graph that {@link #verify} has no room for, before a program runs for nothing.
   *
   * @throws GraphException if the host's memory is too small
   */
  public static void requireVerifiable(GraphAlgorithm algorithm, GraphReader graph) {
    graph.requireRoom(algorithm == GraphAlgorithm.SSSP);
  }

  /**
   * Has the CPU do the same, and compares.
   *
   * @throws GraphException if there is a difference, or the image is damaged
   */
  public static void verify(GraphReport report, GraphReader graph, GraphListener listener) {
    GraphResult result = report.result();
    GraphReport right = runByCpu(result.algorithm(), result.source(), graph, listener);
    result.requireSame(right.result(), graph.name());
  }

  private GraphResult run() {
    // Before the run: for want of it no result is lost.
    MemorySegment all =
        Arena.ofAuto().allocate(header.vertices() * algorithm.resultBytes(), Long.BYTES);
    long start = System.nanoTime();
    DeviceBuffer values =
        switch (algorithm) {
          case BFS -> levels();
          case CC -> components();
          case SSSP -> distances();
          case PAGERANK -> ranks();
        };
    long nanos = System.nanoTime() - start;
    values.copyToHost(0, all);
    return new GraphResult(algorithm, source, all, rounds, kernels.edges(), nanos);
  }

  private DeviceBuffer values() {
    DeviceBuffer values = kernels.buffer(header.vertices() * Integer.BYTES);
    kernels.set(GraphArgs.VALUES, values);
    return values;
  }

  /** Two frontiers, of which one is visited while the other is made. */
  private final class Frontiers {
    private final DeviceBuffer[] buffers = new DeviceBuffer[2];
    private long count;
    private int next;

    Frontiers() {
      long capacity = kernels.mostPieces();
      for (int i = 0; i < buffers.length; i++) {
        buffers[i] = kernels.buffer(capacity * Long.BYTES);
      }
      kernels.set(GraphArgs.CAPACITY, capacity);
      kernels.set(GraphArgs.SOURCE, (int) source);
    }

    /** Runs a kernel that makes the next one. */
    void make(String kernel) {
      make(() -> kernels.run(kernel));
    }

    private void make(Runnable run) {
      kernels.set(GraphArgs.NEXT_FRONTIER, buffers[next]);
      kernels.set(GraphArgs.FRONTIER, buffers[1 - next]);
      kernels.set(GraphArgs.FRONTIER_COUNT, count);
      run.run();
      count = kernels.nextCount();
      next = 1 - next;
    }

    /** Visits its edges, in the order that reads fewer pages. */
    void visit(String kernel) {
      kernels.begins(algorithm + " round " + ++rounds);
      String how = kernels.sweeps(count) ? "_sweep" : "_follow";
      make(() -> kernels.visit(kernel + how));
    }
  }

  private DeviceBuffer levels() {
    DeviceBuffer levels = values();
    kernels.setAll(levels);
    Frontiers frontiers = new Frontiers();
    frontiers.make("source");
    for (int level = 0; frontiers.count > 0; level++) {
      kernels.set(GraphArgs.ROUND, level);
      frontiers.visit("levels");
    }
    return levels;
  }

  /** Near and far: those within a step, until there are none; then the next step. */
  private DeviceBuffer distances() {
    DeviceBuffer distances = values();
    kernels.setAll(distances);
    kernels.set(GraphArgs.MARKS, kernels.buffer(header.vertices() * Integer.BYTES));
    Frontiers frontiers = new Frontiers();
    int round = 1;
    long near = STEP;
    kernels.set(GraphArgs.ROUND, round);
    kernels.set(GraphArgs.NEAR, (int) near);
    frontiers.make("source");
    while (true) {
      while (frontiers.count > 0) {
        kernels.set(GraphArgs.ROUND, round++);
        frontiers.visit("distances");
      }
      near = Math.min(near + STEP, NOWHERE);
      kernels.set(GraphArgs.NEAR, (int) near);
      kernels.set(GraphArgs.ROUND, round);
      frontiers.make("distances_next");
      if (frontiers.count == 0) {
        if (kernels.nearest() == NOWHERE) {
          return distances;
        }
        near = kernels.nearest();
      }
    }
  }

  private DeviceBuffer components() {
    DeviceBuffer components = values();
    kernels.run("components_begin");
    kernels.begins("cc");
    kernels.visit("components_sweep");
    kernels.run("components_end");
    rounds = 1;
    return components;
  }

  private DeviceBuffer ranks() {
    long count = header.vertices();
    DeviceBuffer now = kernels.buffer(count * Double.BYTES);
    DeviceBuffer next = kernels.buffer(count * Double.BYTES);
    kernels.set(GraphArgs.SHARES, kernels.buffer(count * Double.BYTES));
    kernels.set(GraphArgs.BASE, PageRank.base(count));
    kernels.set(GraphArgs.DAMPING, PageRank.DAMPING);
    double change;
    do {
      kernels.set(GraphArgs.ROUND, rounds);
      kernels.set(GraphArgs.RANKS, now);
      kernels.set(GraphArgs.NEXT_RANKS, next);
      kernels.run("ranks_begin");
      kernels.begins("pagerank iteration " + ++rounds);
      kernels.visit("ranks_sweep");
      kernels.run("ranks_end");
      change = kernels.change();
      DeviceBuffer before = now;
      now = next;
      next = before;
    } while (change >= PageRank.TOLERANCE && rounds < PageRank.ITERATIONS);
    return now;
  }
}
