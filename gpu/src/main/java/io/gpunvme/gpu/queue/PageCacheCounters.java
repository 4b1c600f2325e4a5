package io.gpunvme.gpu.queue;

import io.gpunvme.gpu.queue.DeviceLayout.Cache;
import io.gpunvme.gpu.queue.DeviceLayout.Tier;
import java.lang.foreign.MemorySegment;

/**
 * What a {@link PageCache} has counted so far, in pages.
 *
 * @param acquires of pages, by lanes of a warp that wanted the same one together; prefetches do not
 *     count; 0 if they are not counted ({@link PageCacheOptions#counting})
 * @param misses pages that were given a frame
 * @param joined lanes that waited for a page that was being read already
 * @param prefetched pages that were asked for before anybody needed them
 * @param reads pages that came from the SSDs
 * @param writes pages that were written to the SSD
 * @param evictions pages that made room for another
 * @param conflicts times that a page found no frame at once: all in which it may be were held
 * @param readFailures pages that did not come
 * @param writeFailures writes that failed; the page is still there, and dirty
 * @param lost frames that are out of use because a command timed out, and its data may still move
 * @param regained those that came back while a kernel ran
 * @param corrupt pages that arrived with other bytes than they had before; 0 where they are not
 *     compared ({@link PageCacheOptions#withVerify})
 * @param tierHits misses that were found in the host tier, and not read; like all that follows 0
 *     without one ({@link PageCacheOptions#withHostTier})
 * @param tierInserts pages that left the cache and were kept there
 * @param tierEvictions pages that made room for another there
 * @param tierRefusals pages that left the cache and were not kept: missed once only, or no more
 *     often than the page that they would have replaced
 */
public record PageCacheCounters(
    long acquires,
    long misses,
    long joined,
    long prefetched,
    long reads,
    long writes,
    long evictions,
    long conflicts,
    long readFailures,
    long writeFailures,
    long lost,
    long regained,
    long corrupt,
    long tierHits,
    long tierInserts,
    long tierEvictions,
    long tierRefusals) {
  static PageCacheCounters read(MemorySegment cache, long acquires, MemorySegment tier) {
    return new PageCacheCounters(
        acquires,
        DeviceLayout.getLong(cache, Cache.MISSES),
        DeviceLayout.getLong(cache, Cache.JOINED),
        DeviceLayout.getLong(cache, Cache.PREFETCHED),
        DeviceLayout.getLong(cache, Cache.READS),
        DeviceLayout.getLong(cache, Cache.WRITES),
        DeviceLayout.getLong(cache, Cache.EVICTIONS),
        DeviceLayout.getLong(cache, Cache.CONFLICTS),
        DeviceLayout.getLong(cache, Cache.READ_FAILURES),
        DeviceLayout.getLong(cache, Cache.WRITE_FAILURES),
        DeviceLayout.getLong(cache, Cache.LOST),
        DeviceLayout.getLong(cache, Cache.REGAINED),
        DeviceLayout.getLong(cache, Cache.CORRUPT),
        DeviceLayout.getLong(tier, Tier.HITS),
        DeviceLayout.getLong(tier, Tier.INSERTS),
        DeviceLayout.getLong(tier, Tier.EVICTIONS),
        DeviceLayout.getLong(tier, Tier.REFUSALS));
  }

  /** What was counted since an earlier look. */
  public PageCacheCounters since(PageCacheCounters earlier) {
    return new PageCacheCounters(
        acquires - earlier.acquires,
        misses - earlier.misses,
        joined - earlier.joined,
        prefetched - earlier.prefetched,
        reads - earlier.reads,
        writes - earlier.writes,
        evictions - earlier.evictions,
        conflicts - earlier.conflicts,
        readFailures - earlier.readFailures,
        writeFailures - earlier.writeFailures,
        lost - earlier.lost,
        regained - earlier.regained,
        corrupt - earlier.corrupt,
        tierHits - earlier.tierHits,
        tierInserts - earlier.tierInserts,
        tierEvictions - earlier.tierEvictions,
        tierRefusals - earlier.tierRefusals);
  }

  /**
   * Acquires that needed neither a read nor the host tier, 0 to 1: the page was there, or on its
   * way. 0 if there were none, or they are not counted.
   */
  public double hitRate() {
    return acquires == 0 ? 0 : Math.clamp(1 - (double) (misses - prefetched) / acquires, 0, 1);
  }
}
