// An example of a kernel that decides on the GPU what to read: walks through a table on SSDs whose rows name the rows to read
// next, as sampling a graph or looking up embeddings does. No list of reads exists beforehand, anywhere.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

// Layout in Gather.java.
struct Walk {
  u32 sum;     // of all words of all rows read
  u32 row;     // the row after the last
  u32 reads;
  u32 retries;  // reads that were repeated, because the SSD said that they may be
  Status status;
};

// Where rows lie that follow each other; layout in Gather.java.
struct Run {
  u64 end;   // the first row after them
  u64 slba;  // of the first of them
  u32 ssd;
  u32 first; // the first of them
};

namespace {

// The run of a row: the first that ends after it.
__device__ const Run& find(const Run* runs, u32 count, u32 row) {
  u32 low = 0;
  u32 high = count - 1;
  while (low < high) {
    u32 middle = (low + high) / 2;
    if (runs[middle].end > row) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return runs[low];
}

}  // namespace

// Thread t starts at row t * 2654435761 mod rows. A row's first 8 words name its neighbours.
extern "C" __global__ void gpunvme_gather(const Storage* storage, Walk* walks, const Run* runs, u32 run_count, u32 threads,
                                          u32 hops, u32 rows, u32 blocks_per_row, u32 retries) {
  u32 t = blockIdx.x * blockDim.x + threadIdx.x;
  if (t >= threads) {
    return;
  }
  u32 words = (blocks_per_row << storage->namespaces[0].block_shift) / 4;
  u64 offset = static_cast<u64>(t) * words * 4;
  Walk walk = {0, t * 2654435761u % rows, 0, 0, status::kSuccess};
  for (u32 hop = 0; hop < hops; hop++) {
    const Run& run = find(runs, run_count, walk.row);
    const Namespace& ns = storage->namespaces[run.ssd];
    const Buffer& buffer = storage->buffer(0, run.ssd);
    u64 slba = run.slba + static_cast<u64>(walk.row - run.first) * blocks_per_row;
    for (u32 attempt = 0;; attempt++) {
      walk.status = read(ns, storage->queue(ns, t / 32), slba, blocks_per_row, buffer, offset);
      if (!may_retry(walk.status) || attempt == retries) {
        break;
      }
      walk.retries++;
    }
    if (failed(walk.status)) {
      break;
    }
    walk.reads++;
    // Not from a cache: the controller wrote the row, and will write others there at the next hop.
    const u32* row_words = reinterpret_cast<const u32*>(static_cast<char*>(buffer.memory) + offset);
    for (u32 i = 0; i < words; i += 4) {
      Quad q = mem::load_system(reinterpret_cast<const Quad*>(row_words + i));
      walk.sum += q.x + q.y + q.z + q.w;
    }
    walk.row = mem::load_system(row_words + (walk.sum & 7)) % rows;
  }
  walks[t] = walk;
}
