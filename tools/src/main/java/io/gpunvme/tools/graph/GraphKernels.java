package io.gpunvme.tools.graph;

import static io.gpunvme.gpu.queue.DeviceLayout.getInt;
import static io.gpunvme.gpu.queue.DeviceLayout.getLong;
import static io.gpunvme.gpu.queue.DeviceLayout.setInt;
import static io.gpunvme.gpu.queue.DeviceLayout.setLong;

import io.gpunvme.base.CloseAll;
import io.gpunvme.cuda.CudaAttribute;
import io.gpunvme.cuda.CudaStream;
import io.gpunvme.cuda.KernelArguments;
import io.gpunvme.cuda.LaunchShape;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.GpuModule;
import io.gpunvme.tools.graph.GraphLayout.GraphArgs;
import io.gpunvme.tools.graph.GraphLayout.GraphOutcome;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The kernels of {@code graph.cu} on a graph whose offsets are in GPU memory, and whose edges may
 * be on an SSD: one after the other, with the arguments that were set. For one thread.
 */
final class GraphKernels implements AutoCloseable {
  private static final String KERNEL = "gpunvme_graph_";
  private static final int BLOCK = 256;
  private static final long LOOK_NANOS = 250_000_000;

  // The same in graph.cu.
  private static final int NO_VERTEX = 2;
  private static final int NO_WEIGHT = 3;
  private static final int TOO_FAR = 4;
  private static final int NO_ROOM = 5;

  private final GpuAccelerator gpu;
  private final GraphReader graph;
  private final GraphOptions options;
  private final GraphListener listener;
  private final List<AutoCloseable> open = new ArrayList<>();
  private final Arena arena = Arena.ofConfined();
  private final MemorySegment args = arena.allocate(GraphArgs.SIZE, Long.BYTES);
  private final MemorySegment outcome = arena.allocate(GraphOutcome.SIZE, Long.BYTES);
  private final EdgeMemory memory;
  private final DeviceBuffer outcomeBuffer;
  private final GpuModule module;
  private final CudaStream stream;
  private final int blocks;
  private final @Nullable PageTrace trace;
  private final @Nullable DeviceBuffer traced;
  private long edges;
  private long looked;
  private long told;

  /**
   * @param weights whether kernels read them
   */
  GraphKernels(
      GpuAccelerator gpu,
      GraphReader graph,
      GraphOptions options,
      boolean weights,
      GraphListener listener) {
    this.gpu = gpu;
    this.graph = graph;
    this.options = options;
    this.listener = listener;
    try {
      // Before anything of theirs runs: to load kernels waits for others.
      module = GpuModule.resource(gpu, "graph");
      stream = keep(gpu.betweenKernels(() -> gpu.context().stream()));
      GraphHeader header = graph.header();
      memory = keep(memory(weights));
      int processors = gpu.context().device().attribute(CudaAttribute.MULTIPROCESSOR_COUNT);
      blocks =
          options.threads() == 0
              ? processors * memory.blocks()
              : Math.ceilDiv(options.threads(), BLOCK);
      DeviceBuffer offsets = buffer((header.vertices() + 1) * Long.BYTES);
      graph.offsets(listener, offsets::copyFromHost);
      outcomeBuffer = buffer(GraphOutcome.SIZE);
      set(GraphArgs.EDGES, memory.edges());
      set(GraphArgs.WEIGHTS, memory.weights());
      set(GraphArgs.OFFSETS, offsets);
      set(GraphArgs.OUTCOME, outcomeBuffer);
      set(GraphArgs.VERTICES, header.vertices());
      set(GraphArgs.EDGE_COUNT, header.edges());
      set(GraphArgs.PAGE_SHIFT, Long.numberOfTrailingZeros(pageEdges()));
      trace = options.least() ? new PageTrace(header, options.pageBytes(), weights) : null;
      traced = trace == null ? null : buffer(trace.pages() * (long) Integer.BYTES);
      if (trace != null && traced != null) {
        set(GraphArgs.SEEN, buffer(traced.size()));
        set(GraphArgs.TRACE, traced);
      }
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, this::close);
      throw e;
    }
  }

  private EdgeMemory memory(boolean weights) {
    if (options.place() == EdgePlace.SSD) {
      return new SsdEdges(graph, options, weights);
    }
    boolean host = options.place() == EdgePlace.HOST;
    return new LoadedEdges(gpu, graph, host, options.pageBytes(), weights, listener);
  }

  private <T extends AutoCloseable> T keep(T made) {
    open.add(made);
    return made;
  }

  /** GPU memory, cleared. */
  DeviceBuffer buffer(long bytes) {
    return keep(gpu.allocate(bytes));
  }

  void set(long field, long value) {
    setLong(args, field, value);
  }

  void set(long field, double value) {
    setLong(args, field, Double.doubleToRawLongBits(value));
  }

  void set(long field, int value) {
    setInt(args, field, value);
  }

  void set(long field, DeviceBuffer buffer) {
    setLong(args, field, buffer.deviceAddress());
  }

  /** Sets all bits of a buffer, before the next kernel. */
  void setAll(DeviceBuffer buffer) {
    stream.fillAsync(buffer.deviceAddress(), (byte) 0xFF, buffer.size());
  }

  /** Pieces of a frontier, at most: each vertex, and each end of a page between its edges. */
  long mostPieces() {
    return graph.header().vertices() + Math.ceilDiv(graph.header().edges(), pageEdges());
  }

  private long pageEdges() {
    return options.pageBytes() / Integer.BYTES;
  }

  /** Whether a frontier's edges are better visited by a sweep. */
  boolean sweeps(long pieces) {
    return pieces > memory.mostPieces();
  }

  /** Runs a kernel that visits edges; as {@link #run}. */
  void visit(String kernel) {
    run(kernel + memory.suffix());
    if (trace != null && traced != null) {
      trace.add(getLong(outcome, GraphOutcome.TRACED), traced::copyToHost);
    }
  }

  /**
   * Runs a kernel, and waits for its end.
   *
   * @throws GraphException if the image is damaged
   * @throws io.gpunvme.nvme.NvmeException if a read failed
   */
  void run(String kernel) {
    outcome.fill((byte) 0);
    setInt(outcome, GraphOutcome.NEAREST, -1);
    outcomeBuffer.copyFromHost(outcome, 0);
    stream.launch(
        module.function(KERNEL + kernel),
        LaunchShape.of(blocks, BLOCK),
        new KernelArguments().addStruct(args));
    memory.await(this::isOver);
    outcomeBuffer.copyToHost(0, outcome);
    int failure = getInt(outcome, GraphOutcome.FAILURE);
    if (failure != 0) {
      throw failure(failure);
    }
    edges += getLong(outcome, GraphOutcome.EDGES);
  }

  /** Now and then tells how far it is, which takes time. */
  private boolean isOver() {
    long now = System.nanoTime();
    if (listener != GraphListener.NONE && now - looked > LOOK_NANOS) {
      looked = now;
      long read = memory.bytesRead();
      listener.moved(read - told);
      told = read;
    }
    return stream.isIdle();
  }

  /** A sweep or a round begins. */
  void begins(String what) {
    listener.begins(what, graph.header().edges() * Integer.BYTES);
  }

  private RuntimeException failure(int failure) {
    long edge = getLong(outcome, GraphOutcome.EDGE);
    long value = getLong(outcome, GraphOutcome.VALUE);
    return switch (failure) {
      case NO_VERTEX -> graph.noVertex(edge, value);
      case NO_WEIGHT ->
          GraphHeader.damaged(graph.name(), "edge %d has a weight of 0".formatted(edge));
      case TOO_FAR ->
          new GraphException(
              GraphException.Kind.TOO_LARGE,
              graph.name(),
              "a distance of %d and more: distances have 32 bits".formatted(value));
      case NO_ROOM ->
          new IllegalStateException("a frontier of more than %d pieces".formatted(mostPieces()));
      default -> memory.readFailed(edge, getInt(outcome, GraphOutcome.STATUS));
    };
  }

  /** Pieces of the next frontier, as the last kernel left it. */
  long nextCount() {
    return getLong(outcome, GraphOutcome.NEXT_COUNT);
  }

  /** The nearest vertex that is to wait, as an unsigned number; all ones if none is. */
  long nearest() {
    return Integer.toUnsignedLong(getInt(outcome, GraphOutcome.NEAREST));
  }

  /** By how much ranks have changed. */
  double change() {
    return Double.longBitsToDouble(getLong(outcome, GraphOutcome.CHANGE));
  }

  /** Edges that all kernels together have visited. */
  long edges() {
    return edges;
  }

  /** What they have read from the SSD. */
  GraphReport.@Nullable Reads reads() {
    GraphReport.Reads reads = memory.reads();
    return reads == null || trace == null
        ? reads
        : reads.withLeast(trace.leastReads(reads.cacheBytes() / reads.pageBytes()));
  }

  @Override
  public void close() {
    try {
      CloseAll.newestFirst(open);
    } finally {
      arena.close();
    }
  }
}
