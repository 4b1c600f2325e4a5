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
 * @param reads by the GPU; null: the CPU had all of the graph in memory
 */
public record GraphReport(
    GraphHeader header, GraphResult result, String accelerator, @Nullable Reads reads) {
  /**
   * How a GPU read edges and weights.
   *
   * @param placement of queues and cache
   * @param counters of the cache
   * @param cacheBytes of the cache
   * @param pageBytes of a page
   * @param queuePairs of each SSD
   * @param depth commands in flight of each
   */
  public record Reads(
      Placement placement,
      PageCacheCounters counters,
      long cacheBytes,
      int pageBytes,
      int queuePairs,
      int depth) {}
}
