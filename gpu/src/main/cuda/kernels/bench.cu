// Kernels that measure the queues. What they move or count is checked before a number is made of it.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

// Layout in BenchLayout.java.
struct alignas(16) BenchArgs {
  Queue* queues;
  u64* done;          // commands that ended well, per warp
  u64* failed;        // and badly
  u32* latencies;     // ns, where the kernel records them
  u32 queue_count;
  u32 commands;       // per warp (exclusive, block), per lane (shared)
  u32 nsid;
  u32 lanes;          // shared: how many lanes of each warp call
  u32 mode;           // shared: 0 together, 1 in two places, 2 at times of their own
  u32 servers;        // served: the first so many blocks serve
  u32* callers;       // served: the other blocks that are not over
};

namespace {

__device__ u32 mix(u32 x) {
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ x >> 16;
}

// What the no-copy responders answer: the SLBA is the command's number, which tells them a lost command from a doubled one;
// the low bits of the number are PRP1's page, which tells an SQE read before it was whole. No data moves.
__device__ Command no_copy(const BenchArgs& a, u32 n) {
  return {opcode::kRead, a.nsid, n, 1, 0, static_cast<u64>(n << 12), 0, n};
}

class Numbers {
 public:
  __device__ explicit Numbers(const BenchArgs& args) : a(args), left(args.commands) {}

  __device__ bool take(bool wanted, Command& c) {
    u32 rank = warp::lane();
    bool got = wanted && rank < left;
    if (got) {
      c = no_copy(a, next + rank);
    }
    u32 n = warp::popcount(warp::ballot(warp::kFull, got));
    next += n;
    left -= n;
    return got;
  }

 private:
  const BenchArgs& a;
  u32 next = 0;
  u32 left;
};

class Count {
 public:
  __device__ void done(bool valid, u32 user, u64, Status s) {
    if (valid) {
      good += s == status::kSuccess;
      bad += s != status::kSuccess;
      // Every command must end once: the sum of their numbers tells.
      sum += user;
    }
  }

  u32 good = 0;
  u32 bad = 0;
  u32 sum = 0;
};

}  // namespace

// One warp per queue pair, kept full. Commands are numbered from 0 in the order of their submission, on every queue.
extern "C" __global__ void __launch_bounds__(32) gpunvme_bench_exclusive(BenchArgs a) {
  Numbers numbers(a);
  Count count;
  ExclusiveQueue queue(a.queues + blockIdx.x);
  queue.run(numbers, count);
  queue.close();
  u32 good = warp::sum(count.good);
  u32 bad = warp::sum(count.bad);
  u32 sum = warp::sum(count.sum);
  // 0 + 1 + 2 + ... modulo 2^32
  u64 n = a.commands;
  u32 expected = static_cast<u32>(n * (n - 1) / 2);
  if (warp::lane() == 0) {
    a.done[blockIdx.x] = good;
    a.failed[blockIdx.x] = bad + (sum == expected ? 0 : 1);
  }
}

namespace {

// Numbers for a block: each thread knows its place among those that want one.
class BlockNumbers {
 public:
  __device__ explicit BlockNumbers(const BenchArgs& args) : a(args), total(args.commands * block::warps()) {}

  __device__ bool take(bool wanted, Command& c) {
    u32 number = next + block::index() * warp::kWidth + warp::lane();
    next += block::count(wanted);
    c = no_copy(a, number);
    return wanted && number < total;
  }

 private:
  const BenchArgs& a;
  const u32 total;
  u32 next = 0;
};

struct BlockShared {
  BlockQueue::Shared queue;
  u32 sum;
};

}  // namespace

// A block per queue pair, as gpunvme_bench_exclusive does it with a warp. A warp may end what another one took, so the sum of the
// numbers is the block's.
extern "C" __global__ void __launch_bounds__(128) gpunvme_bench_block(BenchArgs a) {
  GPUNVME_SHARED(BlockShared, shared);
  u32 number = block::index() * warp::kWidth + warp::lane();
  if (number == 0) {
    shared.sum = 0;
  }
  BlockNumbers numbers(a);
  Count count;
  BlockQueue queue(a.queues + blockIdx.x, shared.queue);
  queue.run(numbers, count);
  queue.close();
  block::fetch_add(&shared.sum, count.sum);
  block::sync();
  u32 good = warp::sum(count.good);
  u32 bad = warp::sum(count.bad);
  u64 n = static_cast<u64>(a.commands) * block::warps();
  u32 expected = static_cast<u32>(n * (n - 1) / 2);
  if (number == 0 && shared.sum != expected) {
    bad++;
  }
  if (warp::lane() == 0) {
    u32 warp_index = blockIdx.x * block::warps() + block::index();
    a.done[warp_index] = good;
    a.failed[warp_index] = bad;
  }
}

namespace {

// A warp's commands on a shared queue. Numbers count through all lanes that call.
template <bool kHelps>
__device__ void call(const BenchArgs& a, CallersQueue<kHelps> queue, u32 warp_index) {
  u32 lane = warp::lane();
  u32 good = 0;
  u32 bad = 0;
  bool calls = lane < a.lanes;
  if (calls) {
    for (u32 i = 0; i < a.commands; i++) {
      Command c = no_copy(a, (warp_index * a.lanes + lane) * a.commands + i);
      Status s;
      if (a.mode == 1 && (lane & 3) == (i & 3)) {
        // A quarter of the warp comes from elsewhere and later.
        pause(100 + (mix(i) & 511));
        s = queue.execute(c);
      } else if (a.mode == 2) {
        // Every lane comes at a time of its own.
        pause(200 + lane * 20);
        s = queue.execute(c);
      } else {
        s = queue.execute(c);
      }
      good += s == status::kSuccess;
      bad += s != status::kSuccess;
    }
  }
  good = warp::sum(good);
  bad = warp::sum(bad);
  if (lane == 0) {
    a.done[warp_index] = good;
    a.failed[warp_index] = bad;
  }
}

// Whether this block is one that serves; it has done so then.
__device__ bool served(const BenchArgs& a) {
  if (blockIdx.x >= a.servers) {
    return false;
  }
  Namespace ns = {};
  ns.queues = a.queues;
  ns.queue_count = a.queue_count;
  u32 warps = block::warps();
  serve(Storage{}, ns, blockIdx.x * warps + block::index(), a.servers * warps, a.callers);
  return true;
}

}  // namespace

// Any number of warps, all queue pairs shared.
extern "C" __global__ void __launch_bounds__(256, 1) gpunvme_bench_shared(BenchArgs a) {
  u32 warp_index = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  call(a, SharedQueue(a.queues + warp_index % a.queue_count), warp_index);
}

// The same by callers that do not serve.
extern "C" __global__ void __launch_bounds__(256, 1) gpunvme_bench_served(BenchArgs a) {
  if (served(a)) {
    return;
  }
  u32 warp_index = ((blockIdx.x - a.servers) * blockDim.x + threadIdx.x) / 32;
  call(a, ServedQueue(a.queues + warp_index % a.queue_count), warp_index);
  block::sync();
  if (threadIdx.x == 0) {
    leave(a.callers);
  }
}

namespace {

class Timed {
 public:
  __device__ explicit Timed(const BenchArgs& args) : a(args) {}

  __device__ bool take(bool wanted, Command& c) {
    bool got = wanted && warp::lane() == 0 && number < a.commands;
    if (got) {
      c = no_copy(a, number);
    }
    number++;
    begin = nanos();
    return got;
  }

  __device__ void done(bool valid, u32 user, u64, Status s) {
    if (valid) {
      a.latencies[user] = s == status::kSuccess ? static_cast<u32>(nanos() - begin) : 0;
      good += s == status::kSuccess;
    }
  }

  u32 good = 0;

 private:
  const BenchArgs& a;
  u32 number = 0;
  u64 begin = 0;
};

}  // namespace

// One command at a time on one exclusive queue of depth 1: latencies as the GPU sees them.
extern "C" __global__ void __launch_bounds__(32) gpunvme_bench_qd1(BenchArgs a) {
  Timed timed(a);
  ExclusiveQueue queue(a.queues);
  queue.run(timed, timed);
  queue.close();
  if (warp::lane() == 0) {
    a.done[0] = timed.good;
    a.failed[0] = a.commands - timed.good;
  }
}

namespace {

template <bool kHelps>
__device__ void call_timed(const BenchArgs& a, CallersQueue<kHelps> queue) {
  u32 good = 0;
  for (u32 i = 0; i < a.commands; i++) {
    u64 begin = nanos();
    Status s = queue.execute(no_copy(a, i));
    a.latencies[i] = static_cast<u32>(nanos() - begin);
    good += s == status::kSuccess;
  }
  a.done[0] = good;
  a.failed[0] = a.commands - good;
}

}  // namespace

// The same for a shared queue.
extern "C" __global__ void __launch_bounds__(32, 1) gpunvme_bench_shared_qd1(BenchArgs a) {
  if (threadIdx.x == 0) {
    call_timed(a, SharedQueue(a.queues));
  }
}

// And for one that another warp serves.
extern "C" __global__ void __launch_bounds__(32, 1) gpunvme_bench_served_qd1(BenchArgs a) {
  if (!served(a) && threadIdx.x == 0) {
    call_timed(a, ServedQueue(a.queues));
    leave(a.callers);
  }
}

// The floor of every latency: a doorbell store, and a word that comes back from whoever polls it. No queue.
extern "C" __global__ void gpunvme_bench_round_trip(u32* doorbell, const u32* answer, u32* latencies, u32 count,
                                                    u64 timeout_ns) {
  for (u32 i = 1; i <= count; i++) {
    u64 begin = nanos();
    mem::store_system(doorbell, i);
    u32 tries = 0;
    while (mem::load_system(answer) != i) {
      if ((++tries & 1023) == 0 && nanos() - begin > timeout_ns) {
        return;
      }
    }
    latencies[i - 1] = static_cast<u32>(nanos() - begin);
  }
}
