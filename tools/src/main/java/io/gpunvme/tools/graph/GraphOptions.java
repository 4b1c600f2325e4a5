package io.gpunvme.tools.graph;

import io.gpunvme.gpu.queue.Placement;

/**
 * How a program runs on a GPU.
 *
 * @param cacheBytes of the page cache between the GPU and the SSD; 0: a quarter of the edges
 * @param pageBytes of a page: what a miss reads; a power of two from 512 to 64 KiB
 * @param placement of the queues and the cache
 * @param queuePairs of each SSD; 0: chosen
 * @param depth commands in flight of each; 0: chosen
 * @param threads of the GPU; 0: 256 for each multiprocessor. Rounded up to blocks of 256
 */
public record GraphOptions(
    long cacheBytes, int pageBytes, Placement placement, int queuePairs, int depth, int threads) {
  private static final int PAGE = 4096;

  /** Pages of 4 KiB in a cache of a quarter of the edges; everything else is chosen. */
  public static GraphOptions in(Placement placement) {
    return new GraphOptions(0, PAGE, placement, 0, 0, 0);
  }

  /** The same with another cache. */
  public GraphOptions withCache(long bytes, int ofPages) {
    return new GraphOptions(bytes, ofPages, placement, queuePairs, depth, threads);
  }

  /** The same with other queues and threads. */
  public GraphOptions with(int pairs, int perQueue, int ofGpu) {
    return new GraphOptions(cacheBytes, pageBytes, placement, pairs, perQueue, ofGpu);
  }
}
