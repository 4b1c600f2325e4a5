package io.gpunvme.tools.graph;

import io.gpunvme.gpu.queue.PageCacheOptions;
import io.gpunvme.gpu.queue.Placement;

/**
 * How a program runs on a GPU.
 *
 * @param place of edges and weights; the numbers after it are for those on an SSD
 * @param cacheBytes of the page cache between the GPU and the SSD; 0: a quarter of the edges
 * @param pageBytes of a page: what a miss reads, and what a warp visits of one vertex; a power of
 *     two from 512 to 64 KiB
 * @param placement of the queues and the cache
 * @param queuePairs of each SSD; 0: chosen
 * @param depth commands in flight of each; 0: chosen
 * @param threads of the GPU; 0: 256 for each multiprocessor. Rounded up to blocks of 256
 * @param least whether the fewest reads are computed with which a cache of this size could do;
 *     kernels then note which pages they want, which costs time
 */
public record GraphOptions(
    EdgePlace place,
    long cacheBytes,
    int pageBytes,
    Placement placement,
    int queuePairs,
    int depth,
    int threads,
    boolean least) {
  private static final int PAGE = 4096;

  /** Checks the size of pages. */
  public GraphOptions {
    PageCacheOptions.of(1 << 30, pageBytes);
  }

  /** Pages of 4 KiB in a cache of a quarter of the edges; everything else is chosen. */
  public static GraphOptions in(Placement placement) {
    return new GraphOptions(EdgePlace.SSD, 0, PAGE, placement, 0, 0, 0, false);
  }

  /** The same with another cache. */
  public GraphOptions withCache(long bytes, int ofPages) {
    return new GraphOptions(place, bytes, ofPages, placement, queuePairs, depth, threads, least);
  }

  /** The same with edges elsewhere. */
  public GraphOptions with(EdgePlace other) {
    return new GraphOptions(
        other, cacheBytes, pageBytes, placement, queuePairs, depth, threads, least);
  }

  /** The same with other queues and threads. */
  public GraphOptions with(int pairs, int perQueue, int ofGpu) {
    return new GraphOptions(place, cacheBytes, pageBytes, placement, pairs, perQueue, ofGpu, least);
  }

  /** The same, and the fewest reads are computed. */
  public GraphOptions withLeast() {
    return new GraphOptions(
        place, cacheBytes, pageBytes, placement, queuePairs, depth, threads, true);
  }
}
