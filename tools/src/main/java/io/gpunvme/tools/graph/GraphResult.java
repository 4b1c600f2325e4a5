package io.gpunvme.tools.graph;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * What a program has found.
 *
 * @param algorithm what was done
 * @param source where it began; -1 if it began nowhere
 * @param values {@link GraphAlgorithm#resultBytes} for each vertex; all ones for one that was not
 *     reached
 * @param rounds levels, rounds or iterations
 * @param edges that were visited, each as often as it was
 * @param nanos that it took
 */
public record GraphResult(
    GraphAlgorithm algorithm,
    long source,
    MemorySegment values,
    int rounds,
    long edges,
    long nanos) {
  /** Of sums of ranks that threads have added in another order. */
  private static final double TOLERANCE = 1e-9;

  private static final int NOT_REACHED = -1;
  private static final ValueLayout.OfDouble RANK =
      ValueLayout.JAVA_DOUBLE.withOrder(ByteOrder.LITTLE_ENDIAN);

  /** A vertex's level, component or distance. */
  public long value(long vertex) {
    return new IntWords(values).get(vertex);
  }

  /** A vertex's rank. */
  public double rank(long vertex) {
    return values.getAtIndex(RANK, vertex);
  }

  /**
   * What there is in it: vertices that were reached, or components, or the sum of ranks in
   * millionths.
   */
  public long amount() {
    IntWords words = new IntWords(values);
    long amount = 0;
    switch (algorithm) {
      case BFS, SSSP -> {
        for (long v = 0; v < words.size(); v++) {
          amount += words.getInt(v) == NOT_REACHED ? 0 : 1;
        }
      }
      case CC -> {
        for (long v = 0; v < words.size(); v++) {
          amount += words.get(v) == v ? 1 : 0;
        }
      }
      case PAGERANK -> {
        double sum = 0;
        for (long v = 0; v < values.byteSize() / Double.BYTES; v++) {
          sum += rank(v);
        }
        amount = Math.round(sum * 1e6);
      }
    }
    return amount;
  }

  /**
   * Compares it with what another has found. Ranks may differ by the order in which they were added
   * up.
   *
   * @throws GraphException for the first vertex that has something else
   */
  public void requireSame(GraphResult right, String image) {
    long count = values.byteSize() / algorithm.resultBytes();
    for (long v = 0; v < count; v++) {
      boolean same;
      if (algorithm == GraphAlgorithm.PAGERANK) {
        same = Math.abs(rank(v) - right.rank(v)) <= TOLERANCE * right.rank(v);
      } else {
        same = value(v) == right.value(v);
      }
      if (!same) {
        throw new GraphException(
            GraphException.Kind.WRONG_RESULT,
            image,
            "%s: vertex %d has %s, and %s by the CPU: the graph's bytes arrived wrong, or this is a defect of gpunvme"
                .formatted(algorithm, v, text(v), right.text(v)));
      }
    }
  }

  private String text(long vertex) {
    return algorithm == GraphAlgorithm.PAGERANK
        ? Double.toString(rank(vertex))
        : Long.toString(value(vertex));
  }
}
