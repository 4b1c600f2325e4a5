package io.gpunvme.tools.graph;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.Arrays;

/**
 * The programs by one thread of the CPU, with the whole graph in memory: the simplest way to each
 * result, for comparison.
 */
final class CpuPrograms {
  private static final int NOT_REACHED = -1;
  private static final long FARTHEST = (1L << 32) - 2;
  private static final int MOST_WEIGHT = 255;
  private static final ValueLayout.OfDouble RANK =
      ValueLayout.JAVA_DOUBLE.withOrder(ByteOrder.LITTLE_ENDIAN);

  private final MemoryGraph graph;
  private final Arena arena;
  private int rounds;
  private long visited;

  private CpuPrograms(MemoryGraph graph, Arena arena) {
    this.graph = graph;
    this.arena = arena;
  }

  /**
   * Runs one.
   *
   * @param source -1 if it begins nowhere
   * @param arena of the result
   */
  static GraphResult run(GraphAlgorithm algorithm, long source, MemoryGraph graph, Arena arena) {
    CpuPrograms run = new CpuPrograms(graph, arena);
    long start = System.nanoTime();
    MemorySegment values =
        switch (algorithm) {
          case BFS -> run.levels(source);
          case CC -> run.components();
          case SSSP -> run.distances(source);
          case PAGERANK -> run.ranks();
        };
    long nanos = System.nanoTime() - start;
    return new GraphResult(algorithm, source, values, run.rounds, run.visited, nanos);
  }

  private IntWords words() {
    return IntWords.allocate(arena, graph.vertices());
  }

  private MemorySegment levels(long source) {
    IntWords levels = words();
    levels.fill(NOT_REACHED);
    try (Arena own = Arena.ofConfined()) {
      IntWords queue = IntWords.allocate(own, graph.vertices());
      long tail = 0;
      queue.set(tail++, source);
      levels.set(source, 0);
      for (long head = 0; head < tail; head++) {
        long v = queue.get(head);
        rounds = levels.getInt(v) + 1;
        for (long e = graph.begin(v); e < graph.begin(v + 1); e++) {
          long to = graph.edges().get(e);
          visited++;
          if (levels.getInt(to) == NOT_REACHED) {
            levels.set(to, levels.get(v) + 1);
            queue.set(tail++, to);
          }
        }
      }
    }
    return levels.segment();
  }

  private static long root(IntWords parents, long vertex) {
    long v = vertex;
    while (parents.get(v) != v) {
      parents.set(v, parents.get(parents.get(v)));
      v = parents.get(v);
    }
    return v;
  }

  private MemorySegment components() {
    IntWords parents = words();
    for (long v = 0; v < graph.vertices(); v++) {
      parents.set(v, v);
    }
    for (long v = 0; v < graph.vertices(); v++) {
      for (long e = graph.begin(v); e < graph.begin(v + 1); e++) {
        long one = root(parents, v);
        long other = root(parents, graph.edges().get(e));
        visited++;
        parents.set(Math.max(one, other), Math.min(one, other));
      }
    }
    for (long v = 0; v < graph.vertices(); v++) {
      parents.set(v, root(parents, v));
    }
    rounds = 1;
    return parents.segment();
  }

  /** Vertices to look at, with the same distance. */
  private static final class Bucket {
    private int[] vertices = new int[16];
    private int count;

    void add(long vertex) {
      if (count == vertices.length) {
        vertices = Arrays.copyOf(vertices, count * 2);
      }
      vertices[count++] = (int) vertex;
    }
  }

  /** R. Dial's: a bucket for each distance that an edge from the nearest bucket can lead to. */
  private MemorySegment distances(long source) {
    IntWords distances = words();
    distances.fill(NOT_REACHED);
    Bucket[] buckets = new Bucket[MOST_WEIGHT + 1];
    Arrays.setAll(buckets, _ -> new Bucket());
    distances.set(source, 0);
    buckets[0].add(source);
    long waiting = 1;
    for (long near = 0; waiting > 0; near++) {
      Bucket bucket = buckets[(int) (near % buckets.length)];
      // No weight is 0: nothing comes in meanwhile.
      waiting -= bucket.count;
      rounds += bucket.count > 0 ? 1 : 0;
      for (int i = 0; i < bucket.count; i++) {
        long v = Integer.toUnsignedLong(bucket.vertices[i]);
        if (distances.get(v) == near) {
          waiting += relax(v, near, distances, buckets);
        }
      }
      bucket.count = 0;
    }
    return distances.segment();
  }

  /** Returns how many vertices were put into buckets. */
  private int relax(long v, long near, IntWords distances, Bucket[] buckets) {
    int more = 0;
    for (long e = graph.begin(v); e < graph.begin(v + 1); e++) {
      long to = graph.edges().get(e);
      long distance = near + graph.weight(e);
      visited++;
      if (distance > FARTHEST && distances.getInt(to) == NOT_REACHED) {
        throw new GraphException(
            GraphException.Kind.TOO_LARGE,
            graph.name(),
            "vertex %d is %d away, which is more than 4294967294".formatted(to, distance));
      }
      if (distance < distances.get(to)) {
        distances.set(to, distance);
        buckets[(int) (distance % buckets.length)].add(to);
        more++;
      }
    }
    return more;
  }

  private MemorySegment ranks() {
    long count = graph.vertices();
    MemorySegment ranks = arena.allocate(count * Double.BYTES, Double.BYTES);
    try (Arena own = Arena.ofConfined()) {
      MemorySegment shares = own.allocate(count * Double.BYTES, Double.BYTES);
      for (long v = 0; v < count; v++) {
        ranks.setAtIndex(RANK, v, 1.0 / count);
      }
      double change;
      do {
        change = iterate(ranks, shares);
        rounds++;
      } while (change >= PageRank.TOLERANCE && rounds < PageRank.ITERATIONS);
    }
    return ranks;
  }

  /** Returns by how much the ranks change in all. */
  private double iterate(MemorySegment ranks, MemorySegment next) {
    long count = graph.vertices();
    for (long v = 0; v < count; v++) {
      next.setAtIndex(RANK, v, PageRank.base(count));
    }
    for (long v = 0; v < count; v++) {
      double share = PageRank.DAMPING * ranks.getAtIndex(RANK, v) / graph.degree(v);
      for (long e = graph.begin(v); e < graph.begin(v + 1); e++) {
        long to = graph.edges().get(e);
        visited++;
        next.setAtIndex(RANK, to, next.getAtIndex(RANK, to) + share);
      }
    }
    double change = 0;
    for (long v = 0; v < count; v++) {
      change += Math.abs(next.getAtIndex(RANK, v) - ranks.getAtIndex(RANK, v));
    }
    ranks.copyFrom(next);
    return change;
  }
}
