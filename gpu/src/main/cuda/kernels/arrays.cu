// Kernels that measure arrays and the page cache. Word i of the SSD is the hash of i.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

// Layout in BenchLayout.java.
struct alignas(16) ArrayArgs {
  const DeviceArray* array;  // of words, all of the namespace
  u64* result;               // words that are not what they should be, failures included; of the first of them the index, the
                             // value, the status; and the sum of all words
  const Storage* storage;    // reads and writes past the cache; its buffer 0 has a page for each lane
  u32 page_words;
  u32 rounds;                // of each warp
  u32 seed;
  u32 lanes;                 // of each warp, the lowest: those that want something
  u32 checks;                // whether each word is compared; else they are added up only
  u32 reserved;
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

// What a thread has found.
class Found {
 public:
  __device__ explicit Found(const ArrayArgs& args) : a(args) {}

  __device__ void word(u64 i, u64 value, Status s) {
    sum += value;
    if (a.checks != 0 && (failed(s) || value != mix(i)) && mem::fetch_add(a.result, 1ull) == 0) {
      a.result[1] = i;
      a.result[2] = value;
      a.result[3] = s;
    }
  }

  __device__ ~Found() { mem::add(a.result + 4, sum); }

 private:
  const ArrayArgs& a;
  u64 sum = 0;
};

// A random number below n, for this thread or warp.
__device__ u64 below(u64 n, const ArrayArgs& a, u32 round, u32 who) {
  u32 x = (who * 0x9E3779B1u ^ round * 0x85EBCA6Bu) + a.seed;
  x = (x ^ x >> 16) * 0x7FEB352Du;
  x = (x ^ x >> 15) * 0x846CA68Bu;
  return multiply_high(static_cast<u64>(x ^ x >> 16) << 32 | x * 0x9E3779B1u, n);
}

// Words that every warp finds in a page of its own choice, a word a lane.
template <bool kHelps>
__device__ void pages(const ArrayArgs& a) {
  Array<u64, kHelps> array(a.array);
  Found found(a);
  u64 count = array.size() / a.page_words;
  for (u32 round = 0; round < a.rounds; round++) {
    u64 i = below(count, a, round, this_warp()) * a.page_words + (round & 15) * warp::kWidth + warp::lane();
    u64 value = array[i];
    found.word(i, value, array.status());
  }
}

// All words, in their order: neighbouring lanes have neighbours.
template <bool kHelps>
__device__ void in_order(const ArrayArgs& a) {
  Array<u64, kHelps> array(a.array);
  Found found(a);
  u64 step = static_cast<u64>(warps()) * warp::kWidth;
  for (u32 round = 0; round < a.rounds; round++) {
    for (u64 i = static_cast<u64>(this_warp()) * warp::kWidth + warp::lane(); i < array.size(); i += step) {
      u64 value = array[i];
      found.word(i, value, array.status());
    }
  }
}

// A word of a page of its own for each lane. kSkewed: of `count` pages, a power of two, rank r is wanted as often as r to the power of
// -3/4 says, and the ranks are scattered.
template <bool kHelps, bool kSkewed = false>
__device__ void anywhere(const ArrayArgs& a) {
  if (warp::lane() >= a.lanes) {
    return;
  }
  Array<u64, kHelps> array(a.array);
  Found found(a);
  for (u32 round = 0; round < a.rounds; round++) {
    u32 who = this_warp() * warp::kWidth + warp::lane();
    u64 i = below(array.size(), a, round, who);
    if constexpr (kSkewed) {
      u64 count = array.size() / a.page_words;
      u64 square = below(1ull << 32, a, round, who);
      square = square * square >> 32;
      u64 rank = multiply_high(square * square, count);
      i = (rank * 0x9E3779B1u & (count - 1)) * a.page_words + i % a.page_words;
    }
    u64 value = array[i];
    found.word(i, value, array.status());
  }
}

}  // namespace

// Everything is in the cache: a caller that has to wait for nothing needs none of the registers for it.
extern "C" __global__ void __maxnreg__(40) gpunvme_bench_array_pages(ArrayArgs a) { pages<false>(a); }
extern "C" __global__ void __maxnreg__(40) gpunvme_bench_array_in_order(ArrayArgs a) { in_order<false>(a); }
extern "C" __global__ void __maxnreg__(40) gpunvme_bench_array_anywhere(ArrayArgs a) { anywhere<false>(a); }

extern "C" __global__ void __launch_bounds__(256, 1) gpunvme_bench_array_fill(ArrayArgs a) { in_order<true>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) gpunvme_bench_array_misses(ArrayArgs a) { anywhere<true>(a); }
extern "C" __global__ void __launch_bounds__(256, 1) gpunvme_bench_array_skewed(ArrayArgs a) { anywhere<true, true>(a); }

// Pages in their order, written by the warps, 32 at a time, without a read.
extern "C" __global__ void __launch_bounds__(256, 1) gpunvme_bench_array_writes(ArrayArgs a) {
  Array<u64> array(a.array);
  u64 count = array.size() / a.page_words;
  Found found(a);
  for (u64 first = static_cast<u64>(this_warp()) * warp::kWidth; first < count; first += static_cast<u64>(warps()) * warp::kWidth) {
    Span<u64> span = array.pin_to_overwrite((first + warp::lane()) * a.page_words, a.page_words);
    u64 mine = reinterpret_cast<u64>(span.mutable_data());
    found.word(0, mine == 0 ? 0 : mix(0), array.status());
    for (u32 lane = 0; lane < warp::kWidth; lane++) {
      u64* data = reinterpret_cast<u64*>(warp::shuffle(warp::kFull, mine, lane));
      for (u32 i = warp::lane(); data != nullptr && i < a.page_words; i += warp::kWidth) {
        data[i] = mix((first + lane) * a.page_words + i);
      }
    }
    warp::sync(warp::kFull);
  }
}

// The same reads and writes past the cache, a page for each lane, the words checked and made alike.
extern "C" __global__ void __launch_bounds__(256, 1) gpunvme_bench_array_raw_reads(ArrayArgs a) {
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
  Found found(a);
  for (u32 round = 0; round < a.rounds; round++) {
    u64 i = below(words, a, round, this_warp() * warp::kWidth + warp::lane());
    Status s = read_one(ns, queue, i / a.page_words * blocks, blocks, buffer, place);
    u64 word = *reinterpret_cast<const u64*>(static_cast<const char*>(buffer.memory) + place + i % a.page_words * sizeof(u64));
    found.word(i, word, s);
  }
}

extern "C" __global__ void __launch_bounds__(256, 1) gpunvme_bench_array_raw_writes(ArrayArgs a) {
  const Storage& storage = *a.storage;
  const Namespace& ns = storage.namespaces[0];
  const Buffer& buffer = storage.buffer(0, 0);
  u64 bytes = static_cast<u64>(a.page_words) * sizeof(u64);
  u32 blocks = static_cast<u32>(bytes >> ns.block_shift);
  u64 place = this_warp() * warp::kWidth * bytes;
  u64* memory = reinterpret_cast<u64*>(static_cast<char*>(buffer.memory) + place);
  u64 count = ns.blocks / blocks;
  SharedQueue queue = storage.queue(ns, warp::place());
  Found found(a);
  for (u64 first = static_cast<u64>(this_warp()) * warp::kWidth; first < count; first += static_cast<u64>(warps()) * warp::kWidth) {
    for (u32 i = warp::lane(); i < a.page_words * warp::kWidth; i += warp::kWidth) {
      memory[i] = mix(first * a.page_words + i);
    }
    warp::sync(warp::kFull);
    Status s = write(ns, queue, (first + warp::lane()) * blocks, blocks, buffer, place + warp::lane() * bytes);
    found.word(0, mix(0), s);
    warp::sync(warp::kFull);
  }
}
