// Kernels that measure reads whose data is checked on the GPU.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

// Layout in BenchLayout.java.
struct alignas(16) RandomArgs {
  Queue* queues;         // exclusive, one per warp and block
  const Buffer* buffer;  // a block for every slot of every queue
  u32* places;           // per queue a ring of 2^slot_bits entries with the numbers of the blocks of `buffer` that are free
  u64* done;             // blocks that arrived and are the right ones, per warp
  u64* failed;           // commands that failed, and wrong blocks
  u64 blocks;            // of the namespace: commands name random ones
  u32* next;             // number of the next command of all warps together, so that a slow queue holds up nobody
  u32 commands;          // in all; the numbers stay below 2^32
  u32 nsid;
  u32 block_shift;
  u32 seed;
};

namespace {

// The finalizer of splitmix64; BlockPattern.java has the same.
__device__ u64 mix(u64 x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ x >> 27) * 0x94d049bb133111ebull;
  return x ^ x >> 31;
}

// Source and sink of random reads. A block of the buffer belongs to one command from take() to done().
class RandomReads {
 public:
  __device__ RandomReads(const RandomArgs& args, const Queue& q)
      : a(args), ring(args.places + (blockIdx.x << q.slot_bits)), mask(q.slot_mask()), tail(q.depth) {}

  __device__ bool take(bool wanted, Command& c) {
    u32 wish = warp::popcount(warp::ballot(warp::kFull, wanted));
    u32 first = warp::lane() == 0 ? mem::fetch_add(a.next, wish) : 0;
    u32 n = warp::shuffle(warp::kFull, first, 0) + warp::lane();
    bool got = wanted && n < a.commands;
    if (got) {
      u32 place = mem::load(ring + ((head + warp::lane()) & mask));
      u64 random = mix(static_cast<u64>(a.seed) << 32 ^ n);
      c = {opcode::kRead, a.nsid, random % a.blocks, 1, 0, 0, 0, place};
      prp::entries(*a.buffer, static_cast<u64>(place) << a.block_shift, 1ull << a.block_shift, c.prp1, c.prp2);
    }
    u32 count = warp::popcount(warp::ballot(warp::kFull, got));
    head += count;
    return got;
  }

  __device__ void done(bool valid, u32 place, u64 slba, Status s) {
    if (valid) {
      bool right = s == status::kSuccess && is_block(place, slba);
      good += right ? 1 : 0;
      bad += right ? 0 : 1;
    }
    u32 freed = warp::ballot(warp::kFull, valid);
    if (valid) {
      mem::store(ring + ((tail + warp::rank(freed)) & mask), place);
    }
    tail += warp::popcount(freed);
    warp::sync(warp::kFull);
  }

  u32 good = 0;
  u32 bad = 0;

 private:
  // A block begins with its number and the hash of it, and ends with them the other way round.
  __device__ bool is_block(u32 place, u64 number) const {
    const Pair* first = reinterpret_cast<const Pair*>(static_cast<const char*>(a.buffer->memory) +
                                                      (static_cast<u64>(place) << a.block_shift));
    const Pair* last = first + (1u << a.block_shift) / sizeof(Pair) - 2;
    Pair p0 = mem::load_system(first);
    Pair p1 = mem::load_system(first + 1);
    Pair p2 = mem::load_system(last);
    Pair p3 = mem::load_system(last + 1);
    u64 hash = mix(number);
    return word(p0) == number && word(p1) == hash && word(p2) == hash && word(p3) == number;
  }

  __device__ static u64 word(const Pair& p) { return static_cast<u64>(p.y) << 32 | p.x; }

  const RandomArgs& a;
  u32* const ring;
  const u32 mask;
  u32 head = 0;
  u32 tail;
};

}  // namespace

// One warp per queue pair, kept full with reads of one random block each. Every block is looked at when it arrives.
extern "C" __global__ void __launch_bounds__(32) gpunvme_bench_random(RandomArgs a) {
  RandomReads reads(a, a.queues[blockIdx.x]);
  ExclusiveQueue queue(a.queues + blockIdx.x);
  queue.run(reads, reads);
  queue.close();
  u32 good = warp::sum(reads.good);
  u32 bad = warp::sum(reads.bad);
  if (warp::lane() == 0) {
    a.done[blockIdx.x] = good;
    a.failed[blockIdx.x] = bad;
  }
}

// Counts the words of a buffer that are not the hash of their position.
extern "C" __global__ void __launch_bounds__(256) gpunvme_bench_check(const u64* data, u64 words, u64* wrong) {
  u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  u64 count = 0;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step) {
    count += data[i] == mix(i) ? 0 : 1;
  }
  if (count != 0) {
    mem::fetch_add(wrong, count);
  }
}

// Stands for the work with a layer, which begins at word `first` of the SSD: looks at every word, and takes `least` ns at least.
// Adds up what each word is, mixed with where it is; LayerSums.java has the same.
extern "C" __global__ void __launch_bounds__(256)
    gpunvme_bench_layer(const u64* data, u64 words, u64 first, u64 least, u64* sum) {
  u64 begin = nanos();
  u64 step = static_cast<u64>(gridDim.x) * blockDim.x;
  u64 mine = 0;
  for (u64 i = static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; i < words; i += step) {
    mine += mix(data[i] ^ (first + i));
  }
  mem::fetch_add(sum, mine);
  while (nanos() - begin < least) {
    pause(200);
  }
}
