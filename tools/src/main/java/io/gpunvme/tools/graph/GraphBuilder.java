package io.gpunvme.tools.graph;

import io.gpunvme.base.Reason;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Makes an image of edges, in memory that does not grow with them: as many vertices are taken at a
 * time as have edges that fit into memory together, and each time all edges are asked for. Edges
 * from a vertex to itself are left out. Of edges between the same vertices one stays, with the
 * least weight. The edges of a vertex are in the order of those that they lead to.
 */
public final class GraphBuilder {
  /** Of Java's heap, what holds edges. */
  private static final int HEAP_SHARE = 2;

  /** Edges of a group, which are in an array. */
  private static final int MOST_GROUP = 1 << 30;

  private static final int OUTPUT_BYTES = 1 << 20;
  private static final int WEIGHT_BITS = 8;
  private static final int WEIGHT = (1 << WEIGHT_BITS) - 1;

  private final EdgeSource source;
  private final boolean symmetric;
  private final FileChannel out;
  private final GraphListener listener;
  private final long room;
  private final int most;

  /** Of each vertex the edges; of those of a group, the end of its edges there. */
  private final IntWords counts;

  private final GraphHeader plan;

  private GraphBuilder(
      EdgeSource source,
      boolean symmetric,
      FileChannel out,
      GraphListener listener,
      long room,
      int most,
      IntWords counts,
      long all) {
    this.source = source;
    this.symmetric = symmetric;
    this.out = out;
    this.listener = listener;
    this.room = room;
    this.most = most;
    this.counts = counts;
    plan = GraphHeader.plan(source.vertices(), all, symmetric, source.weighted());
  }

  /**
   * Writes an image.
   *
   * @param symmetric whether each edge is there in both directions
   * @param out empty, and can be written anywhere; the caller closes it
   * @throws IOException if edges cannot be read, or the image not be written
   * @throws GraphException if the edges are not what they should be, or there are none, or those of
   *     one vertex do not fit into memory
   */
  public static GraphHeader build(
      EdgeSource source, boolean symmetric, FileChannel out, GraphListener listener)
      throws IOException {
    long heap = Runtime.getRuntime().maxMemory() / HEAP_SHARE / Long.BYTES;
    return build(source, symmetric, out, listener, heap, MOST_GROUP);
  }

  /**
   * @param room for edges in memory
   * @param most edges of a group
   */
  static GraphHeader build(
      EdgeSource source,
      boolean symmetric,
      FileChannel out,
      GraphListener listener,
      long room,
      int most)
      throws IOException {
    try (Arena arena = Arena.ofShared()) {
      IntWords counts = IntWords.allocate(arena, source.vertices());
      long all = count(source, symmetric, counts, listener);
      if (all == 0) {
        throw new GraphException(
            GraphException.Kind.INPUT,
            source.name(),
            "has no edge from a vertex to another: an image has at least one");
      }
      return new GraphBuilder(source, symmetric, out, listener, room, most, counts, all).write();
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
  }

  /** Returns how many edges there are in all. */
  private static long count(
      EdgeSource source, boolean symmetric, IntWords counts, GraphListener listener) {
    listener.begins("count edges", source.edges() * Integer.BYTES);
    each(
        source,
        listener,
        (from, to, weight) -> {
          if (from != to) {
            counts.getAndAdd(from, 1);
            if (symmetric) {
              counts.getAndAdd(to, 1);
            }
          }
        });
    long sum = 0;
    for (long v = 0; v < counts.size(); v++) {
      sum += counts.get(v);
    }
    return sum;
  }

  private static void each(EdgeSource source, GraphListener listener, EdgeSource.Sink sink) {
    long bytes = source.edges() * Integer.BYTES / source.parts();
    IntStream.range(0, source.parts())
        .parallel()
        .forEach(
            part -> {
              try {
                source.part(part, sink);
              } catch (IOException e) {
                throw new UncheckedIOException(e);
              }
              listener.moved(bytes);
            });
  }

  private GraphHeader write() throws IOException {
    long edges = 0;
    long first = 0;
    while (first < source.vertices()) {
      List<Group> groups = groups(first);
      fill(groups);
      for (Group group : groups) {
        edges += group.write(edges);
      }
      first = groups.getLast().end;
    }
    return finish(edges);
  }

  /** Those from a vertex on that fit into memory together. */
  private List<Group> groups(long first) {
    List<Group> groups = new ArrayList<>();
    long left = room;
    long end = first;
    while (end < source.vertices()) {
      long begin = end;
      long sum = 0;
      while (end < source.vertices() && sum + counts.get(end) <= Math.min(left, most)) {
        sum += counts.get(end++);
      }
      if (end == begin) {
        break;
      }
      groups.add(new Group(begin, end, (int) sum));
      left -= sum;
    }
    if (groups.isEmpty()) {
      throw new GraphException(
          GraphException.Kind.TOO_LARGE,
          source.name(),
          counts.get(first) > MOST_GROUP
              ? "vertex %d has %d edges, doubled ones included: an image is made of at most %d of a vertex"
                  .formatted(first, counts.get(first), MOST_GROUP)
              : "vertex %d has %d edges, and Java's heap has room for %d at a time; more is given by"
                      .formatted(first, counts.get(first), Math.min(room, most))
                  + " GPUNVME_JAVA_OPTS=-Xmx%dg".formatted((counts.get(first) * 16 >> 30) + 1));
    }
    return groups;
  }

  /** Brings together the edges of groups of vertices that follow each other. */
  private void fill(List<Group> groups) {
    long first = groups.getFirst().first;
    long end = groups.getLast().end;
    listener.begins(
        "edges of vertices %d to %d".formatted(first, end - 1), source.edges() * Integer.BYTES);
    each(
        source,
        listener,
        (from, to, weight) -> {
          if (from == to) {
            return;
          }
          if (from >= first && from < end) {
            add(groups, from, to, weight);
          }
          if (symmetric && to >= first && to < end) {
            add(groups, to, from, weight);
          }
        });
    groups.forEach(Group::share);
  }

  private void add(List<Group> groups, long from, long to, int weight) {
    int i = 0;
    while (from >= groups.get(i).end) {
      i++;
    }
    int at = (int) counts.getAndAdd(from, 1);
    groups.get(i).edges[at] = to << WEIGHT_BITS | weight & WEIGHT;
  }

  private GraphHeader finish(long edges) throws IOException {
    GraphHeader header = plan.withEdges(edges);
    ByteBuffer last = ByteBuffer.allocate(Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
    put(last.putLong(edges).flip(), header.offsetsAt() + header.vertices() * Long.BYTES);
    put(header.toBytes(), 0);
    if (out.size() < header.bytes()) {
      put(ByteBuffer.allocate(1), header.bytes() - 1);
    }
    return header;
  }

  private void put(ByteBuffer bytes, long at) throws IOException {
    try {
      while (bytes.hasRemaining()) {
        at += out.write(bytes, at);
      }
    } catch (IOException e) {
      throw new IOException("the image cannot be written: " + Reason.of(e), e);
    }
  }

  /** Vertices whose edges are in memory, in an array. */
  private final class Group {
    private final long first;
    private final long end;

    /** Each is the vertex that it leads to, and its weight. */
    private final long[] edges;

    private final List<Share> shares = new ArrayList<>();

    Group(long first, long end, int count) {
      this.first = first;
      this.end = end;
      edges = new long[count];
      long all = 0;
      for (long v = first; v < end; v++) {
        long own = counts.get(v);
        counts.set(v, all);
        all += own;
      }
    }

    /** All are there: about as many for each thread. */
    void share() {
      int parts = 4 * Runtime.getRuntime().availableProcessors();
      long each = counts.get(end - 1) / parts + 1;
      long from = first;
      int begin = 0;
      for (long v = first; v < end; v++) {
        long to = counts.get(v);
        if (to - begin >= each || v == end - 1) {
          shares.add(new Share(edges, from, v + 1, begin));
          from = v + 1;
          begin = (int) to;
        }
      }
    }

    /** Returns how many edges were written, after those of other groups. */
    long write(long before) {
      shares.parallelStream().forEach(Share::order);
      long kept = 0;
      for (Share share : shares) {
        share.at = before + kept;
        kept += share.kept;
      }
      shares.parallelStream().forEach(Share::write);
      return kept;
    }
  }

  /** A thread's share of a group. */
  private final class Share {
    private final long[] group;
    private final long first;
    private final long end;
    private final int begin;
    private int kept;

    /** The number of its first edge. */
    private long at;

    Share(long[] group, long first, long end, int begin) {
      this.group = group;
      this.first = first;
      this.end = end;
      this.begin = begin;
    }

    /** Sorts the edges of each vertex, and has those that stay follow each other. */
    void order() {
      int from = begin;
      for (long v = first; v < end; v++) {
        int to = counts.getInt(v);
        Arrays.sort(group, from, to);
        int own = 0;
        for (int i = from; i < to; i++) {
          // The first of several has the least weight.
          if (i == from || group[i] >>> WEIGHT_BITS != group[i - 1] >>> WEIGHT_BITS) {
            group[begin + kept++] = group[i];
            own++;
          }
        }
        counts.set(v, own);
        from = to;
      }
    }

    void write() {
      Output edges = new Output(plan.edgesAt() + at * Integer.BYTES);
      Output offsets = new Output(plan.offsetsAt() + first * Long.BYTES);
      Output weights = new Output(plan.weightsAt() + at);
      try {
        for (int i = 0; i < kept; i++) {
          edges.room().putInt((int) (group[begin + i] >>> WEIGHT_BITS));
          if (plan.weighted()) {
            weights.room().put((byte) group[begin + i]);
          }
        }
        long offset = at;
        for (long v = first; v < end; v++) {
          offsets.room().putLong(offset);
          offset += counts.get(v);
        }
        edges.flush();
        weights.flush();
        offsets.flush();
      } catch (IOException e) {
        throw new UncheckedIOException(e);
      }
    }
  }

  /** What is written from a place in the image on. */
  private final class Output {
    private final ByteBuffer buffer =
        ByteBuffer.allocate(OUTPUT_BYTES).order(ByteOrder.LITTLE_ENDIAN);
    private long at;

    Output(long at) {
      this.at = at;
    }

    ByteBuffer room() throws IOException {
      if (buffer.remaining() < Long.BYTES) {
        flush();
      }
      return buffer;
    }

    void flush() throws IOException {
      buffer.flip();
      long length = buffer.remaining();
      put(buffer, at);
      at += length;
      buffer.clear();
    }
  }
}
