package io.gpunvme.capi;

import com.google.gson.JsonObject;
import io.gpunvme.gpu.queue.DeviceRows;
import io.gpunvme.gpu.queue.PageCache;
import io.gpunvme.gpu.queue.PageCacheCounters;
import java.time.Duration;

/**
 * A page cache that C has a handle of. Safe for all threads. Closing its storage for kernels closes
 * it, too. If that fails, it can be tried again.
 */
final class Cache implements Handles.ClosedAgain {
  private final Kernels kernels;
  private final PageCache cache;
  private volatile boolean closed;

  Cache(Kernels kernels, PageCache cache) {
    this.kernels = kernels;
    this.cache = cache;
  }

  /** Tells kernels of elements; returns the device address of {@code struct DeviceArray}. */
  long array(Storage storage, long offset, long count, int elementBytes, boolean writable) {
    return kernels.array(
        () -> storage.storage().arrayForKernels(cache, offset, count, elementBytes, writable));
  }

  Rows rows(Storage storage, long offset, long count, long rowBytes, boolean writable) {
    return kernels.whileOpen(
        () -> {
          DeviceRows rows =
              storage.storage().rowsForKernels(cache, offset, count, rowBytes, writable);
          return new Rows(kernels, this, rows);
        });
  }

  /**
   * Has what was stored written and made durable.
   *
   * @param nanos how long it may take, unsigned
   */
  void flush(long nanos) {
    kernels.whileOpen(
        () -> {
          cache.flush(Duration.ofNanos(nanos < 0 ? Long.MAX_VALUE : nanos));
          return nanos;
        });
  }

  /** JSON of what was counted. */
  String counters() {
    return kernels.whileOpen(() -> json(cache.counters()));
  }

  private String json(PageCacheCounters counters) {
    JsonObject all = new JsonObject();
    all.addProperty("bytes", cache.bytes());
    all.addProperty("metadata_bytes", cache.metadataBytes());
    all.addProperty("acquires", counters.acquires());
    all.addProperty("hit_rate", counters.hitRate());
    all.addProperty("misses", counters.misses());
    all.addProperty("joined", counters.joined());
    all.addProperty("prefetched", counters.prefetched());
    all.addProperty("reads", counters.reads());
    all.addProperty("writes", counters.writes());
    all.addProperty("evictions", counters.evictions());
    all.addProperty("conflicts", counters.conflicts());
    all.addProperty("read_failures", counters.readFailures());
    all.addProperty("write_failures", counters.writeFailures());
    all.addProperty("lost", counters.lost());
    all.addProperty("regained", counters.regained());
    all.addProperty("corrupt", counters.corrupt());
    all.addProperty("host_bytes", cache.hostTierBytes());
    all.addProperty("host_hits", counters.tierHits());
    all.addProperty("host_inserts", counters.tierInserts());
    all.addProperty("host_evictions", counters.tierEvictions());
    all.addProperty("host_refusals", counters.tierRefusals());
    return all.toString();
  }

  @Override
  public void close() {
    kernels.beforeItCloses(cache::close);
    closed = true;
  }

  void requireOpen() {
    if (closed) {
      throw new ClosedHandleException("the cache of these rows was closed");
    }
  }
}
