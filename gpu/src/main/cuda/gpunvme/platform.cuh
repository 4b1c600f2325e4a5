#pragma once
// What differs between the compilers that build this library: nvcc and NVRTC for GPUs, and a plain C++17 compiler for
// the CPU twin, in which a warp has one lane, a block is some threads of the program, and every memory operation is at least
// as strong as on the GPU.
// Nothing here knows of NVMe. No standard header is needed: NVRTC has none.

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define GPUNVME_GPU 1
#define GPUNVME_FN __device__ __forceinline__
#define GPUNVME_NOINLINE __device__ __noinline__ inline
#define GPUNVME_PRAGMA(text) _Pragma(#text)
#else
#include <sched.h>
#include <string.h>
#include <time.h>
#define GPUNVME_GPU 0
#define GPUNVME_FN inline
#define GPUNVME_NOINLINE inline
#define GPUNVME_PRAGMA(text)
#endif

// Before a loop: how many of its turns follow each other in the machine code. Code that is inlined into every call is rolled.
#define GPUNVME_UNROLLED(turns) GPUNVME_PRAGMA(unroll turns)
#define GPUNVME_ROLLED GPUNVME_UNROLLED(1)

namespace gpunvme {

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

static_assert(sizeof(u32) == 4 && sizeof(u64) == 8 && sizeof(void*) == 8, "a 64-bit platform");

// ---------------------------------------------------------------------------------------------- the warp

namespace warp {

#if GPUNVME_GPU
constexpr u32 kWidth = 32;

GPUNVME_FN u32 lane() {
  u32 id;
  asm("mov.u32 %0, %%laneid;" : "=r"(id));
  return id;
}
// Where the warp runs: no two of those that run at a time have the same number, and the numbers are small. A warp seldom gets
// another one.
GPUNVME_FN u32 place() {
  u32 sm;
  u32 sms;
  u32 warp;
  asm("mov.u32 %0, %%smid;" : "=r"(sm));
  asm("mov.u32 %0, %%nsmid;" : "=r"(sms));
  asm("mov.u32 %0, %%warpid;" : "=r"(warp));
  return warp * sms + sm;
}
// The lanes that execute this together: a group. Every later operation that takes the group's mask brings them together again.
GPUNVME_FN u32 active() { return __activemask(); }
GPUNVME_FN void sync(u32 mask) { __syncwarp(mask); }
GPUNVME_FN u32 ballot(u32 mask, bool predicate) { return __ballot_sync(mask, predicate); }
GPUNVME_FN u32 shuffle(u32 mask, u32 value, u32 from) { return __shfl_sync(mask, value, from); }
GPUNVME_FN u64 shuffle(u32 mask, u64 value, u32 from) { return __shfl_sync(mask, value, from); }
// Whether there is one lane in the mask, which is not 0.
GPUNVME_FN bool alone(u32 mask) { return (mask & (mask - 1)) == 0; }
// The lanes of the mask that have this lane's value. Slow: 0.2 us on an H200.
GPUNVME_FN u32 match(u32 mask, u64 value) { return __match_any_sync(mask, value); }
GPUNVME_FN u32 popcount(u32 bits) { return __popc(bits); }
// Index of the lowest set bit; bits != 0.
GPUNVME_FN u32 lowest(u32 bits) { return __ffs(static_cast<int>(bits)) - 1; }
#else
constexpr u32 kWidth = 1;

GPUNVME_FN u32 lane() { return 0; }
GPUNVME_FN u32 place() {
  static thread_local char here;
  return static_cast<u32>(reinterpret_cast<unsigned long long>(&here) >> 12);
}
GPUNVME_FN u32 active() { return 1; }
GPUNVME_FN void sync(u32) {}
GPUNVME_FN u32 ballot(u32, bool predicate) { return predicate ? 1 : 0; }
GPUNVME_FN u32 shuffle(u32, u32 value, u32) { return value; }
GPUNVME_FN u64 shuffle(u32, u64 value, u32) { return value; }
// Every other time: what is made for one lane and what is made for several are both right, and the twin is to run both.
GPUNVME_FN bool alone(u32) {
  static thread_local bool last = false;
  last = !last;
  return last;
}
GPUNVME_FN u32 match(u32, u64) { return 1; }
GPUNVME_FN u32 popcount(u32 bits) { return static_cast<u32>(__builtin_popcount(bits)); }
GPUNVME_FN u32 lowest(u32 bits) { return static_cast<u32>(__builtin_ctz(bits)); }
#endif

constexpr u32 kFull = kWidth == 32 ? ~0u : 1u;

// How many lanes of the mask come before this one.
GPUNVME_FN u32 rank(u32 mask) { return popcount(mask & ((1u << lane()) - 1)); }

// Index of the n-th set bit, counted from 0; there are more than n.
GPUNVME_FN u32 nth(u32 bits, u32 n) {
  if (bits == ~0u) {
    return n;
  }
  GPUNVME_ROLLED
  for (u32 i = 0; i < n; i++) {
    bits &= bits - 1;
  }
  return lowest(bits);
}

// The sum of a value over the whole warp.
GPUNVME_FN u32 sum(u32 value) {
  for (u32 distance = kWidth / 2; distance != 0; distance /= 2) {
    value += shuffle(kFull, value, (lane() + distance) % kWidth);
  }
  return value;
}

}  // namespace warp

// --------------------------------------------------------------------------------------------- the block

// Blocks of whole warps, of 1 to kMostWarps. What is called by "all" is called by all threads of the block, each time.
namespace block {

constexpr u32 kMostWarps = 32;

#if GPUNVME_GPU
GPUNVME_FN u32 warps() { return blockDim.x * blockDim.y * blockDim.z / warp::kWidth; }
// This warp's number in its block.
GPUNVME_FN u32 index() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / warp::kWidth;
}
// All: brings the block together, and orders what its threads did before with what they do after.
GPUNVME_FN void sync() { __syncthreads(); }
// All: how many of the block's threads say so. Does what sync() does, too.
GPUNVME_FN u32 count(bool predicate) { return static_cast<u32>(__syncthreads_count(predicate)); }

// On words in the block's shared memory.
GPUNVME_FN u32 fetch_add(u32* shared, u32 v) { return atomicAdd_block(shared, v); }
GPUNVME_FN void lower(u32* shared, u32 v) { atomicMin_block(shared, v); }
#else
GPUNVME_FN u32 fetch_add(u32* shared, u32 v) { return __atomic_fetch_add(shared, v, __ATOMIC_ACQ_REL); }
GPUNVME_FN void lower(u32* shared, u32 v) {
  u32 is = __atomic_load_n(shared, __ATOMIC_ACQUIRE);
  while (v < is && !__atomic_compare_exchange_n(shared, &is, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
}

// The twin's block. Each of its threads is one warp and has a Member as long as it runs.
class Twin {
 public:
  explicit Twin(u32 warps) : warps_(warps) {}

  u32 warps() const { return warps_; }

  void sync() {
    u32 turn = __atomic_load_n(&turn_, __ATOMIC_ACQUIRE);
    if (__atomic_add_fetch(&arrived_, 1, __ATOMIC_ACQ_REL) == warps_) {
      __atomic_store_n(&arrived_, 0, __ATOMIC_RELAXED);
      __atomic_store_n(&turn_, turn + 1, __ATOMIC_RELEASE);
    }
    while (__atomic_load_n(&turn_, __ATOMIC_ACQUIRE) == turn) {
      sched_yield();
    }
  }

  // `use` counts each caller's calls. Sums take turns, so that one can be cleared while nobody has to do with it.
  u32 count(bool predicate, u32 use) {
    fetch_add(&sums_[use % 3], predicate ? 1 : 0);
    sync();
    u32 sum = __atomic_load_n(&sums_[use % 3], __ATOMIC_ACQUIRE);
    __atomic_store_n(&sums_[(use + 2) % 3], 0, __ATOMIC_RELEASE);
    return sum;
  }

  void* shared(u64 offset, u64 bytes) { return offset + bytes <= sizeof shared_ ? shared_ + offset : nullptr; }

 private:
  const u32 warps_;
  u32 arrived_ = 0;
  u32 turn_ = 0;
  u32 sums_[3] = {0, 0, 0};
  alignas(16) u8 shared_[4096] = {};
};

class Member {
 public:
  Member(Twin& block, u32 index) : block(block), index(index) { current() = this; }
  ~Member() { current() = nullptr; }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  static Member*& current() {
    static thread_local Member* member = nullptr;
    return member;
  }

  // The next variable in the block's shared memory, the same for all its threads: they ask in the same order.
  template <class T>
  T& shared() {
    void* at = block.shared(used_, sizeof(T));
    used_ += (sizeof(T) + 15) & ~15ull;
    return *static_cast<T*>(at);
  }

  Twin& block;
  const u32 index;
  u32 counts = 0;

 private:
  u64 used_ = 0;
};

GPUNVME_FN u32 warps() { return Member::current()->block.warps(); }
GPUNVME_FN u32 index() { return Member::current()->index; }
GPUNVME_FN void sync() { Member::current()->block.sync(); }
GPUNVME_FN u32 count(bool predicate) {
  Member& m = *Member::current();
  return m.block.count(predicate, m.counts++);
}
#endif

}  // namespace block

// A variable in the shared memory of the block, without a first value. Kernels that the CPU twin does not run say
// `__shared__ Type name;` instead.
#if GPUNVME_GPU
#define GPUNVME_SHARED(Type, name) __shared__ Type name
#else
#define GPUNVME_SHARED(Type, name) Type& name = gpunvme::block::Member::current()->shared<Type>()
#endif

// --------------------------------------------------------------------------------------------- numbers

// The high half of the product.
#if GPUNVME_GPU
GPUNVME_FN u64 multiply_high(u64 a, u64 b) { return __umul64hi(a, b); }
#else
GPUNVME_FN u64 multiply_high(u64 a, u64 b) {
  __extension__ using u128 = unsigned __int128;
  return static_cast<u64>(static_cast<u128>(a) * b >> 64);
}
#endif

// ------------------------------------------------------------------------------------------------- time

#if GPUNVME_GPU
// Nanoseconds since some moment; the same clock on every multiprocessor.
GPUNVME_FN u64 nanos() {
  u64 t;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
  return t;
}
// Gives way for about this long.
GPUNVME_FN void pause(u32 ns) { __nanosleep(ns); }
// Lets others run, where they do not do so anyway.
GPUNVME_FN void give_way() {}
#else
GPUNVME_FN u64 nanos() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<u64>(t.tv_sec) * 1000000000ull + static_cast<u64>(t.tv_nsec);
}
GPUNVME_FN void pause(u32 ns) {
  timespec t = {0, static_cast<long>(ns)};
  nanosleep(&t, nullptr);
}
GPUNVME_FN void give_way() { sched_yield(); }
#endif

// Four words that are stored with one instruction.
struct alignas(16) Quad {
  u32 x, y, z, w;
};

struct alignas(8) Pair {
  u32 x, y;
};

// Two long words that are loaded with one instruction.
struct alignas(16) Words {
  u64 x, y;
};

}  // namespace gpunvme
