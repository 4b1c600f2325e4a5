// The end of what kernels have stored to arrays (PageCache.flush).
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

// Writes dirty pages of all arrays. Each thread says the first failure that it met.
extern "C" __global__ void __launch_bounds__(128, 1) gpunvme_cache_clean(PageCache* cache, Status* statuses) {
  u32 warp = blockIdx.x * block::warps() + block::index();
  CachedPages<true> pages(cache);
  statuses[warp * warp::kWidth + warp::lane()] = pages.clean(0, frame::kMostPages, warp, gridDim.x * block::warps());
}

// Has each SSD make durable what was written: a block each.
extern "C" __global__ void __launch_bounds__(32, 1) gpunvme_cache_flush(const PageCache* cache, Status* statuses) {
  const Storage& storage = *cache->storage;
  if (warp::lane() == 0) {
    const Namespace& ns = storage.namespaces[blockIdx.x];
    statuses[blockIdx.x] = flush(ns, storage.queue(ns, 0));
  }
}
