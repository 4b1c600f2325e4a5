package io.gpunvme.tools.graph;

/** The numbers of PageRank, as the GAP Benchmark Suite has them. */
final class PageRank {
  /** The share of its rank that a vertex gives to those that its edges lead to. */
  static final double DAMPING = 0.85;

  /** Ranks that change by less, in all, do not change any more. */
  static final double TOLERANCE = 1e-4;

  /** At most. */
  static final int ITERATIONS = 20;

  private PageRank() {}

  /** What a vertex has without an edge to it. */
  static double base(long vertices) {
    return (1 - DAMPING) / vertices;
  }
}
