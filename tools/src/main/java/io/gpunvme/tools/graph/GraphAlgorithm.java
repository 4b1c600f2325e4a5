package io.gpunvme.tools.graph;

import java.util.Locale;

/** What is done with a graph. */
public enum GraphAlgorithm {
  /** Breadth-first search: the number of edges from the source to each vertex. */
  BFS,
  /**
   * Connected components, whatever the direction of edges: of each vertex the lowest in its own.
   */
  CC,
  /** The length of the shortest way from the source to each vertex, by weights. */
  SSSP,
  /**
   * PageRank, as GAP has it: damping 0.85, until ranks change by less than 10^-4 in all, at most 20
   * times.
   */
  PAGERANK;

  /** Whether it begins at a vertex. */
  public boolean hasSource() {
    return this == BFS || this == SSSP;
  }

  /** Bytes of a vertex's result: an unsigned number, or a double of a rank; little endian. */
  public int resultBytes() {
    return this == PAGERANK ? Double.BYTES : Integer.BYTES;
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
