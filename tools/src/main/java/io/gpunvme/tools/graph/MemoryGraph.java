package io.gpunvme.tools.graph;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * A graph in the host's memory.
 *
 * @param name for messages
 * @param offsets of each vertex its first edge, and one more
 * @param edges the vertex that each leads to
 * @param weights of edges; empty without
 */
record MemoryGraph(String name, MemorySegment offsets, IntWords edges, MemorySegment weights) {
  private static final ValueLayout.OfLong OFFSET =
      ValueLayout.JAVA_LONG.withOrder(ByteOrder.LITTLE_ENDIAN);

  long vertices() {
    return offsets.byteSize() / Long.BYTES - 1;
  }

  /** The first edge of a vertex, which comes after the last one of the vertex before. */
  long begin(long vertex) {
    return offsets.getAtIndex(OFFSET, vertex);
  }

  long degree(long vertex) {
    return begin(vertex + 1) - begin(vertex);
  }

  /** The weight of an edge; 0 is damage. */
  int weight(long edge) {
    int weight = Byte.toUnsignedInt(weights.get(ValueLayout.JAVA_BYTE, edge));
    if (weight == 0) {
      throw GraphHeader.damaged(name, "edge %d has a weight of 0".formatted(edge));
    }
    return weight;
  }
}
