package io.gpunvme.tools.graph;

import io.gpunvme.gpu.queue.PageCacheCounters;
import io.gpunvme.gpu.queue.Placement;
import org.jspecify.annotations.Nullable;

/**
 * How a program ran.
 *
 * @param header of the graph
 * @param result what was found
 * @param accelerator on which
 * @param byGpu whether a GPU did it, else the CPU
 * @param place of edges
 * @param reads of edges on an SSD; null: all of them were in memory before it began
 */
public record GraphReport(
    GraphHeader header,
    GraphResult result,
    String accelerator,
    boolean byGpu,
    EdgePlace place,
    @Nullable Reads reads) {
  /**
   * How a GPU read edges and weights.
   *
   * @param placement of queues and cache
   * @param counters of the cache
   * @param cacheBytes of the cache
   * @param pageBytes of a page
   * @param queuePairs of each SSD
   * @param depth commands in flight of each
   * @param least the fewest reads with which a cache of this size could do, whatever it keeps; -1:
   *     nobody has asked
   */
  public record Reads(
      Placement placement,
      PageCacheCounters counters,
      long cacheBytes,
      int pageBytes,
      int queuePairs,
      int depth,
      long least) {
    Reads withLeast(long reads) {
      return new Reads(placement, counters, cacheBytes, pageBytes, queuePairs, depth, reads);
    }
  }
}
