#pragma once
// What differs between the compilers that build this library: nvcc and NVRTC for GPUs, and a plain C++17 compiler for
// the CPU twin, in which a warp has one lane and every memory operation is at least as strong as on the GPU.
// Nothing here knows of NVMe. No standard header is needed: NVRTC has none.

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define GPUNVME_GPU 1
#define GPUNVME_FN __device__ __forceinline__
#define GPUNVME_NOINLINE __device__ __noinline__ inline
#else
#include <time.h>
#define GPUNVME_GPU 0
#define GPUNVME_FN inline
#define GPUNVME_NOINLINE inline
#endif

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
// The lanes that execute this together: a group. Every later operation that takes the group's mask brings them together again.
GPUNVME_FN u32 active() { return __activemask(); }
GPUNVME_FN void sync(u32 mask) { __syncwarp(mask); }
GPUNVME_FN u32 ballot(u32 mask, bool predicate) { return __ballot_sync(mask, predicate); }
GPUNVME_FN u32 shuffle(u32 mask, u32 value, u32 from) { return __shfl_sync(mask, value, from); }
GPUNVME_FN u64 shuffle(u32 mask, u64 value, u32 from) { return __shfl_sync(mask, value, from); }
// The lanes of the mask that have this lane's value. Slow: 0.2 us on an H200.
GPUNVME_FN u32 match(u32 mask, u64 value) { return __match_any_sync(mask, value); }
GPUNVME_FN u32 popcount(u32 bits) { return __popc(bits); }
// Index of the lowest set bit; bits != 0.
GPUNVME_FN u32 lowest(u32 bits) { return __ffs(static_cast<int>(bits)) - 1; }
#else
constexpr u32 kWidth = 1;

GPUNVME_FN u32 lane() { return 0; }
GPUNVME_FN u32 active() { return 1; }
GPUNVME_FN void sync(u32) {}
GPUNVME_FN u32 ballot(u32, bool predicate) { return predicate ? 1 : 0; }
GPUNVME_FN u32 shuffle(u32, u32 value, u32) { return value; }
GPUNVME_FN u64 shuffle(u32, u64 value, u32) { return value; }
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
#endif

// Four words that are stored with one instruction.
struct alignas(16) Quad {
  u32 x, y, z, w;
};

struct alignas(8) Pair {
  u32 x, y;
};

}  // namespace gpunvme
