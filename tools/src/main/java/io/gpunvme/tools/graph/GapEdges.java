package io.gpunvme.tools.graph;

import io.gpunvme.base.InvalidRequestException;
import java.lang.foreign.Arena;
import java.util.Locale;

/**
 * The synthetic graphs of the GAP Benchmark Suite (S. Beamer, K. Asanovic, D. Patterson, "The GAP
 * Benchmark Suite", 2015), edge for edge as its generator made them with the libstdc++ of the time.
 * Kron of scale 27 and degree 16 is GAP-kron of the SuiteSparse collection, and two vertices more,
 * which have no edge. Blocks of 2^18 edges have seeds of their own, so that threads can make them,
 * in any order.
 */
public final class GapEdges implements EdgeSource {
  /** The seed of the suite. */
  public static final long SEED = 27491095;

  /** Of kron, with 2^31 vertices. */
  private static final int MOST_SCALE = 31;

  private static final int MOST_DEGREE = 1 << 16;
  private static final int BLOCK = 1 << 18;
  private static final int MOST_WEIGHT = 255;

  /** Graphs with so many vertices and fewer are shuffled by two draws in one. */
  private static final int FEW = 1 << 15;

  private static final float A = 0.57f;
  private static final float A_B = 0.57f + 0.19f;
  private static final float A_B_C = 0.57f + 0.19f + 0.19f;

  /** What edges are like. */
  public enum Kind {
    /** Kronecker, as of the Graph500 benchmark: few vertices have most edges. */
    KRON,
    /** Each vertex is as likely as another. */
    UNIFORM;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  // The first of the 32-bit draws that is not below, or that is above, the sums of probabilities.
  private static final long ABOVE_A = first(x -> x > A);
  private static final long FROM_A_B = first(x -> x >= A_B);
  private static final long ABOVE_A_B_C = first(x -> x > A_B_C);

  private final Kind kind;
  private final int scale;
  private final int degree;
  private final int seed;
  private final boolean weighted;
  private final IntWords permutation;

  private GapEdges(
      Kind kind, int scale, int degree, int seed, boolean weighted, IntWords permutation) {
    this.kind = kind;
    this.scale = scale;
    this.degree = degree;
    this.seed = seed;
    this.weighted = weighted;
    this.permutation = permutation;
  }

  /**
   * Describes a graph.
   *
   * @param scale of 2^scale vertices, 1..31
   * @param degree edges for each vertex, 1..65536, each counted once
   * @param seed 0..2^32 - 1; {@link #SEED} is the suite's
   * @param weighted with weights from 1 to 255
   * @param arena 4 bytes a vertex are taken of it
   * @throws InvalidRequestException if a number is out of range
   */
  public static GapEdges of(
      Kind kind, int scale, int degree, long seed, boolean weighted, Arena arena) {
    range("scale", scale, 1, MOST_SCALE);
    range("degree", degree, 1, MOST_DEGREE);
    range("seed", seed, 0, 0xFFFFFFFFL);
    IntWords permutation =
        kind == Kind.KRON ? shuffled(1L << scale, (int) seed, arena) : IntWords.allocate(arena, 1);
    return new GapEdges(kind, scale, degree, (int) seed, weighted, permutation);
  }

  private static void range(String what, long value, long low, long high) {
    if (value < low || value > high) {
      throw new InvalidRequestException(
          "%s %d is outside %d..%d".formatted(what, value, low, high));
    }
  }

  /** Of float numbers. */
  private interface Test {
    boolean is(float x);
  }

  /** The first draw whose number passes; those above it do, too. */
  private static long first(Test test) {
    long low = 0;
    long high = 1L << 32;
    while (low < high) {
      long middle = (low + high) / 2;
      // As generate_canonical does it, which never says 1.
      float x = Math.min((float) middle / 0x1p32f, Math.nextDown(1f));
      if (test.is(x)) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

  /** All vertices in the order of std::shuffle. */
  private static IntWords shuffled(long count, int seed, Arena arena) {
    IntWords all = IntWords.allocate(arena, count);
    for (long i = 0; i < count; i++) {
      all.set(i, i);
    }
    MersenneTwister random = new MersenneTwister(seed);
    if (count > FEW) {
      for (long i = 1; i < count; i++) {
        swap(all, i, random.below(i + 1));
      }
      return all;
    }
    swap(all, 1, random.below(2));
    for (long i = 2; i < count; i += 2) {
      long two = random.below((i + 1) * (i + 2));
      swap(all, i, two / (i + 2));
      swap(all, i + 1, two % (i + 2));
    }
    return all;
  }

  private static void swap(IntWords all, long i, long j) {
    long one = all.get(i);
    all.set(i, all.get(j));
    all.set(j, one);
  }

  @Override
  public String name() {
    return "%s graph of scale %d".formatted(kind, scale);
  }

  @Override
  public long vertices() {
    return 1L << scale;
  }

  @Override
  public long edges() {
    return (long) degree << scale;
  }

  @Override
  public boolean weighted() {
    return weighted;
  }

  @Override
  public int parts() {
    return (int) Math.ceilDiv(edges(), (long) BLOCK);
  }

  @Override
  public void part(int part, Sink sink) {
    MersenneTwister random = new MersenneTwister(seed + part);
    MersenneTwister weights = new MersenneTwister(seed + part);
    long count = Math.min(BLOCK, edges() - (long) part * BLOCK);
    for (long i = 0; i < count; i++) {
      int weight = weighted ? 1 + (int) weights.below(MOST_WEIGHT) : 1;
      if (kind == Kind.KRON) {
        kron(random, weight, sink);
      } else {
        long from = random.below(vertices());
        sink.edge(from, random.below(vertices()), weight);
      }
    }
  }

  private void kron(MersenneTwister random, int weight, Sink sink) {
    long from = 0;
    long to = 0;
    for (int bit = 0; bit < scale; bit++) {
      long draw = random.next() & 0xFFFFFFFFL;
      boolean down = draw >= FROM_A_B;
      from = from << 1 | (down ? 1 : 0);
      to = to << 1 | (draw >= (down ? ABOVE_A_B_C : ABOVE_A) ? 1 : 0);
    }
    sink.edge(permutation.get(from), permutation.get(to), weight);
  }
}
