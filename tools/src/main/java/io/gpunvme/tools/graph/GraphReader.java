package io.gpunvme.tools.graph;

import io.gpunvme.base.CloseAll;
import io.gpunvme.base.InvalidRequestException;
import io.gpunvme.gpu.accel.CpuAccelerator;
import io.gpunvme.gpu.accel.DeviceBuffer;
import io.gpunvme.storage.GpuStorage;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** An image on whatever a storage is: its parts by the CPU, checked. For one thread. */
public final class GraphReader implements AutoCloseable {
  private static final int CHUNK = 4 << 20;
  private static final ValueLayout.OfLong OFFSET =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final GpuStorage storage;
  private final String name;
  private final DeviceBuffer buffer;
  private final GraphHeader header;
  private long firstSource = -1;

  private GraphReader(GpuStorage storage, DeviceBuffer buffer, GraphHeader header) {
    this.storage = storage;
    this.buffer = buffer;
    this.header = header;
    name = storage.address().toString();
  }

  /**
   * Reads the header.
   *
   * @param storage the caller closes it after this
   * @throws GraphException if there is no image, or one that cannot be used
   */
  public static GraphReader open(GpuStorage storage) {
    DeviceBuffer buffer = storage.accelerator().allocatePinned(CHUNK);
    try {
      byte[] head = new byte[(int) Math.min(GraphHeader.BYTES, storage.size())];
      if (head.length > 0) {
        storage.read(0, buffer, 0, head.length);
        MemorySegment.ofArray(head).copyFrom(buffer.segment().asSlice(0, head.length));
      }
      String name = storage.address().toString();
      return new GraphReader(storage, buffer, GraphHeader.read(head, storage.size(), name));
    } catch (RuntimeException | Error e) {
      CloseAll.after(e, buffer::close);
      throw e;
    }
  }

  /** What the image says of itself. */
  public GraphHeader header() {
    return header;
  }

  /** The image, for messages. */
  String name() {
    return name;
  }

  /** What lies in it. */
  GpuStorage storage() {
    return storage;
  }

  /** Takes bytes of a part. */
  interface Sink {
    /**
     * Takes some.
     *
     * @param bytes valid until this returns
     * @param at bytes of the part before them
     */
    void take(MemorySegment bytes, long at);
  }

  private void part(String what, long begin, long length, GraphListener listener, Sink sink) {
    listener.begins(what, length);
    for (long at = 0; at < length; at += CHUNK) {
      long bytes = Math.min(CHUNK, length - at);
      storage.read(begin + at, buffer, 0, bytes);
      sink.take(buffer.segment().asSlice(0, bytes), at);
      listener.moved(bytes);
    }
  }

  /**
   * Reads all offsets in their order.
   *
   * @throws GraphException if one is below that before it, or they do not end with the edges
   */
  void offsets(GraphListener listener, Sink sink) {
    long[] last = {0};
    part(
        "read offsets",
        header.offsetsAt(),
        (header.vertices() + 1) * Long.BYTES,
        listener,
        (bytes, at) -> {
          for (long i = 0; i < bytes.byteSize() / Long.BYTES; i++) {
            long vertex = at / Long.BYTES + i;
            last[0] = check(vertex, bytes.getAtIndex(OFFSET, i), last[0]);
          }
          sink.take(bytes, at);
        });
  }

  /** Returns the offset. */
  private long check(long vertex, long offset, long before) {
    boolean end = vertex == 0 || vertex == header.vertices();
    long due = vertex == 0 ? 0 : header.edges();
    if (offset < before || offset > header.edges() || end && offset != due) {
      throw GraphHeader.damaged(
          name,
          "the edges of vertex %d begin with edge %d: %s is possible"
              .formatted(vertex, offset, end ? due : "%d to %d".formatted(before, header.edges())));
    }
    if (firstSource < 0 && offset > before) {
      firstSource = vertex - 1;
    }
    return offset;
  }

  /** The first vertex that has an edge; known once the offsets were read. */
  long firstSource() {
    return firstSource;
  }

  /**
   * Reads all of it into the host's memory.
   *
   * @param weights whether they are wanted
   * @throws GraphException if something in it is not possible
   */
  MemoryGraph load(Arena arena, boolean weights, GraphListener listener) {
    requireRoom(weights);
    MemorySegment offsets = arena.allocate((header.vertices() + 1) * Long.BYTES, Long.BYTES);
    offsets(listener, (bytes, at) -> copy(bytes, offsets, at));
    MemorySegment edges = arena.allocate(header.edges() * Integer.BYTES, Long.BYTES);
    edges(listener, (bytes, at) -> copy(bytes, edges, at));
    MemorySegment all = arena.allocate(weights ? header.edges() : 0);
    if (weights) {
      weights(listener, (bytes, at) -> copy(bytes, all, at));
    }
    return new MemoryGraph(name, offsets, new IntWords(edges), all);
  }

  /**
   * Refuses what the host's memory has no room for, before somebody waits for it.
   *
   * @throws GraphException if {@link #load} would take more than there is
   */
  void requireRoom(boolean weights) {
    long bytes =
        (header.vertices() + 1) * Long.BYTES
            + header.edges() * (Integer.BYTES + (weights ? Byte.BYTES : 0));
    try (CpuAccelerator host = CpuAccelerator.open()) {
      if (bytes > host.availableBytes()) {
        throw new GraphException(
            GraphException.Kind.TOO_LARGE,
            name,
            "the CPU's program has all of it in memory: %d bytes, and %d can be had"
                .formatted(bytes, host.availableBytes()));
      }
    }
  }

  /**
   * Reads all edges in their order.
   *
   * @throws GraphException if one leads to no vertex
   */
  void edges(GraphListener listener, Sink sink) {
    part(
        "read edges",
        header.edgesAt(),
        header.edges() * Integer.BYTES,
        listener,
        (bytes, at) -> {
          IntWords words = new IntWords(bytes);
          for (long i = 0; i < words.size(); i++) {
            if (words.get(i) >= header.vertices()) {
              throw noVertex(at / Integer.BYTES + i, words.get(i));
            }
          }
          sink.take(bytes, at);
        });
  }

  /** Reads all weights in their order; whoever uses one looks whether it is 0. */
  void weights(GraphListener listener, Sink sink) {
    part("read weights", header.weightsAt(), header.edges(), listener, sink);
  }

  private static void copy(MemorySegment bytes, MemorySegment to, long at) {
    to.asSlice(at, bytes.byteSize()).copyFrom(bytes);
  }

  GraphException noVertex(long edge, long vertex) {
    return GraphHeader.damaged(
        name,
        "edge %d leads to vertex %d, and there are %d".formatted(edge, vertex, header.vertices()));
  }

  /**
   * Where a program begins.
   *
   * @param wanted -1: at the first vertex that has an edge
   */
  long source(GraphAlgorithm algorithm, long wanted) {
    if (!algorithm.hasSource()) {
      return -1;
    }
    return wanted < 0 ? firstSource : wanted;
  }

  /**
   * Refuses what cannot be done with this graph.
   *
   * @throws InvalidRequestException if the source is no vertex, or weights are needed and not there
   */
  void require(GraphAlgorithm algorithm, long source) {
    if (algorithm.hasSource() && source >= header.vertices()) {
      throw new InvalidRequestException(
          "source %d: the graph has vertices 0 to %d".formatted(source, header.vertices() - 1));
    }
    if (algorithm == GraphAlgorithm.SSSP && !header.weighted()) {
      throw new InvalidRequestException(
          name + " has no weights, which sssp needs: make the image with --weights");
    }
  }

  @Override
  public void close() {
    buffer.close();
  }
}
