package io.gpunvme.tools.graph;

import java.io.IOException;

/**
 * Edges of which an image is made. They are asked for several times, and are the same each time.
 */
public interface EdgeSource {
  /** Takes edges. */
  interface Sink {
    /**
     * Takes one.
     *
     * @param weight 1..255; any number if the source has no weights
     */
    void edge(long from, long to, int weight);
  }

  /** For messages. */
  String name();

  /** Vertices, 1..2^32 - 1. */
  long vertices();

  /** Edges, with those that are there several times and those from a vertex to itself. */
  long edges();

  /** Whether they have weights. */
  boolean weighted();

  /** The parts that can be asked for, by any thread each. */
  default int parts() {
    return 1;
  }

  /**
   * Tells the edges of a part.
   *
   * @throws IOException if they cannot be read
   * @throws GraphException if they are not what they should be
   */
  void part(int part, Sink sink) throws IOException;
}
