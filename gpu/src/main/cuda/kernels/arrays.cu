// Kernels that measure arrays and the page cache. Word i of the SSD is the hash of i.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

// Layout in BenchLayout.java.
struct alignas(16) ArrayArgs {
  const DeviceArray* array;  // of words, all of the namespace
  u64* wrong;                // words that are not what they should be, failures included
  const Storage* storage;    // reads and writes past the cache; its buffer 0 has a page for each lane
  u32 page_words;
  u32 rounds;                // of each warp
  u32 seed;
  u32 lanes;                 // of each warp, the lowest: those that want something
};

namespace {

// The finalizer of splitmix64; BlockPattern.java has the same.
__device__ u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

__device__ u32 warps() { return gridDim.x * block::warps(); }
__device__ u32 this_warp() { return blockIdx.x * block::warps() + block::index(); }

__device__ void report(const ArrayArgs& a, u32 wrong) {
  if (wrong != 0) {
    mem::fetch_add(a.wrong, static_cast<u64>(wrong));
  }
}

// Words that every warp finds in a page of its own choice, a word a lane.
template <bool kHelps>
__device__ void pages(const ArrayArgs& a) {
  Array<u64, kHelps> array(a.array);
  u64 count = array.size() / a.page_words;
  u32 wrong = 0;
  for (u32 round = 0; round < a.rounds; round++) {
    u64 random = mix(static_cast<u64>(a.seed) << 48 ^ static_cast<u64>(round) << 24 ^ this_warp());
    u64 i = random % count * a.page_words + (random >> 32 & 15) * warp::kWidth + warp::lane();
    wrong += array[i] == mix(i) ? 0 : 1;
  }
  report(a, wrong);
}

// All words, in their order: neighbouring lanes have neighbours.
template <bool kHelps>
__device__ void in_order(const ArrayArgs& a) {
  Array<u64, kHelps> array(a.array);
  u32 wrong = 0;
  u64 step = static_cast<u64>(warps()) * warp::kWidth;
  for (u32 round = 0; round < a.rounds; round++) {
    for (u64 i = static_cast<u64>(this_warp()) * warp::kWidth + warp::lane(); i < array.size(); i += step) {
      wrong += array[i] == mix(i) ? 0 : 1;
    }
  }
  report(a, wrong);
}

// A word of a page of its own for each lane.
template <bool kHelps>
__device__ void anywhere(const ArrayArgs& a) {
  if (warp::lane() >= a.lanes) {
    return;
  }
  Array<u64, kHelps> array(a.array);
  u32 wrong = 0;
  for (u32 round = 0; round < a.rounds; round++) {
    u64 i = mix(static_cast<u64>(a.seed) << 48 ^ static_cast<u64>(round) << 24 ^ (this_warp() * warp::kWidth + warp::lane())) % array.size();
    wrong += array[i] == mix(i) ? 0 : 1;
  }
  report(a, wrong);
}

}  // namespace

// Everything is in the cache: a caller that has to wait for nothing needs none of the registers for it.
extern "C" __global__ void __maxnreg__(40) gpunvme_bench_array_pages(ArrayArgs a) { pages<false>(a); }
extern "C" __global__ void __maxnreg__(40) gpunvme_bench_array_in_order(ArrayArgs a) { in_order<false>(a); }
extern "C" __global__ void __maxnreg__(40) gpunvme_bench_array_anywhere(ArrayArgs a) { anywhere<false>(a); }

extern "C" __global__ void __launch_bounds__(256, 2) gpunvme_bench_array_fill(ArrayArgs a) { in_order<true>(a); }
extern "C" __global__ void __launch_bounds__(256, 2) gpunvme_bench_array_misses(ArrayArgs a) { anywhere<true>(a); }

// Pages in their order, written by the warps, 32 at a time, without a read.
extern "C" __global__ void __launch_bounds__(256, 2) gpunvme_bench_array_writes(ArrayArgs a) {
  Array<u64> array(a.array);
  u64 count = array.size() / a.page_words;
  u32 wrong = 0;
  for (u64 first = static_cast<u64>(this_warp()) * warp::kWidth; first < count; first += static_cast<u64>(warps()) * warp::kWidth) {
    Span<u64> span = array.pin_to_overwrite((first + warp::lane()) * a.page_words, a.page_words);
    u64 mine = reinterpret_cast<u64>(span.mutable_data());
    wrong += mine == 0 ? 1 : 0;
    for (u32 lane = 0; lane < warp::kWidth; lane++) {
      u64* data = reinterpret_cast<u64*>(warp::shuffle(warp::kFull, mine, lane));
      for (u32 i = warp::lane(); data != nullptr && i < a.page_words; i += warp::kWidth) {
        data[i] = mix((first + lane) * a.page_words + i);
      }
    }
    warp::sync(warp::kFull);
  }
  report(a, wrong);
}

// The same reads and writes past the cache, a page for each lane, the words checked and made alike.
extern "C" __global__ void __launch_bounds__(256, 2) gpunvme_bench_array_raw_reads(ArrayArgs a) {
  if (warp::lane() >= a.lanes) {
    return;
  }
  const Storage& storage = *a.storage;
  const Namespace& ns = storage.namespaces[0];
  const Buffer& buffer = storage.buffer(0, 0);
  u64 bytes = static_cast<u64>(a.page_words) * sizeof(u64);
  u32 blocks = static_cast<u32>(bytes >> ns.block_shift);
  u64 place = (this_warp() * warp::kWidth + warp::lane()) * bytes;
  u64 words = ns.blocks / blocks * a.page_words;
  SharedQueue queue = storage.queue(ns, warp::place());
  u32 wrong = 0;
  for (u32 round = 0; round < a.rounds; round++) {
    u64 i = mix(static_cast<u64>(a.seed) << 48 ^ static_cast<u64>(round) << 24 ^ (this_warp() * warp::kWidth + warp::lane())) % words;
    Status s = read_one(ns, queue, i / a.page_words * blocks, blocks, buffer, place);
    u64 word = *reinterpret_cast<const u64*>(static_cast<const char*>(buffer.memory) + place + i % a.page_words * sizeof(u64));
    wrong += !failed(s) && word == mix(i) ? 0 : 1;
  }
  report(a, wrong);
}

extern "C" __global__ void __launch_bounds__(256, 2) gpunvme_bench_array_raw_writes(ArrayArgs a) {
  const Storage& storage = *a.storage;
  const Namespace& ns = storage.namespaces[0];
  const Buffer& buffer = storage.buffer(0, 0);
  u64 bytes = static_cast<u64>(a.page_words) * sizeof(u64);
  u32 blocks = static_cast<u32>(bytes >> ns.block_shift);
  u64 place = this_warp() * warp::kWidth * bytes;
  u64* memory = reinterpret_cast<u64*>(static_cast<char*>(buffer.memory) + place);
  u64 count = ns.blocks / blocks;
  SharedQueue queue = storage.queue(ns, warp::place());
  u32 wrong = 0;
  for (u64 first = static_cast<u64>(this_warp()) * warp::kWidth; first < count; first += static_cast<u64>(warps()) * warp::kWidth) {
    for (u32 i = warp::lane(); i < a.page_words * warp::kWidth; i += warp::kWidth) {
      memory[i] = mix(first * a.page_words + i);
    }
    warp::sync(warp::kFull);
    Status s = write(ns, queue, (first + warp::lane()) * blocks, blocks, buffer, place + warp::lane() * bytes);
    wrong += failed(s) ? 1 : 0;
    warp::sync(warp::kFull);
  }
  report(a, wrong);
}
