#pragma once
// Memory operations by what they are for. On the GPU they are single PTX instructions; on the CPU twin every load
// acquires and every store releases, which is what x86 does anyway and what ThreadSanitizer understands.
//
// Scopes: words that only GPU threads share use .gpu; whatever a controller or the host shares uses .sys (PTX ISA 8.x,
// "Memory Consistency Model").
#include "platform.cuh"

namespace gpunvme {
namespace mem {

#if GPUNVME_GPU

// ---- words shared by GPU threads

GPUNVME_FN u32 load(const u32* p) {
  u32 v;
  asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
GPUNVME_FN void store(u32* p, u32 v) { asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory"); }
GPUNVME_FN u64 load(const u64* p) {
  u64 v;
  asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
  return v;
}
// Acquires need not wait for anything but the load itself; releases wait for every earlier store. So releases are rare here.
GPUNVME_FN u32 load_acquire(const u32* p) {
  u32 v;
  asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
GPUNVME_FN u32 fetch_add(u32* p, u32 v) { return atomicAdd(p, v); }
// Words of 8 bytes are in global memory: for a pointer that may be to shared memory the compiler makes three ways of each operation.
GPUNVME_FN u64 fetch_add(u64* p, u64 v) {
  u64 old;
  asm volatile("atom.relaxed.gpu.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(__cvta_generic_to_global(p)), "l"(v) : "memory");
  return old;
}
GPUNVME_FN void add(u64* p, u64 v) {
  asm volatile("red.relaxed.gpu.global.add.u64 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "l"(v) : "memory");
}
// One more of what is counted only: orders nothing, on the CPU either, so that ThreadSanitizer is not misled.
GPUNVME_FN void count(u64* p) { add(p, 1); }
GPUNVME_FN u32 fetch_and_acquire(u32* p, u32 v) {
  u32 old;
  asm volatile("atom.acquire.gpu.and.b32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(v) : "memory");
  return old;
}
GPUNVME_FN void or_release(u32* p, u32 v) {
  asm volatile("red.release.gpu.or.b32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
GPUNVME_FN u64 fetch_add_acquire(u64* p, u64 v) {
  u64 old;
  asm volatile("atom.acquire.gpu.global.add.u64 %0, [%1], %2;" : "=l"(old) : "l"(__cvta_generic_to_global(p)), "l"(v) : "memory");
  return old;
}
GPUNVME_FN Words load(const Words* p) {
  Words v;
  asm volatile("ld.relaxed.gpu.v2.u64 {%0,%1}, [%2];" : "=l"(v.x), "=l"(v.y) : "l"(p) : "memory");
  return v;
}
GPUNVME_FN u64 fetch_or(u64* p, u64 v) {
  u64 old;
  asm volatile("atom.relaxed.gpu.global.or.b64 %0, [%1], %2;" : "=l"(old) : "l"(__cvta_generic_to_global(p)), "l"(v) : "memory");
  return old;
}
GPUNVME_FN void set_bits(u64* p, u64 v) {
  asm volatile("red.relaxed.gpu.global.or.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "l"(v) : "memory");
}
GPUNVME_FN void clear_bits(u64* p, u64 v) {
  asm volatile("red.relaxed.gpu.global.and.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "l"(~v) : "memory");
}
GPUNVME_FN u64 exchange(u64* p, u64 v) {
  u64 old;
  asm volatile("atom.relaxed.gpu.global.exch.b64 %0, [%1], %2;" : "=l"(old) : "l"(__cvta_generic_to_global(p)), "l"(v) : "memory");
  return old;
}
GPUNVME_FN u32 exchange(u32* p, u32 v) { return atomicExch(p, v); }
GPUNVME_FN u32 fetch_min(u32* p, u32 v) { return atomicMin(p, v); }
GPUNVME_FN void add(double* p, double v) {
  asm volatile("red.relaxed.gpu.global.add.f64 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "d"(v) : "memory");
}
GPUNVME_FN u32 compare_exchange(u32* p, u32 expected, u32 desired) { return atomicCAS(p, expected, desired); }
GPUNVME_FN u64 compare_exchange(u64* p, u64 expected, u64 desired) {
  u64 old;
  asm volatile("atom.relaxed.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(old)
               : "l"(__cvta_generic_to_global(p)), "l"(expected), "l"(desired)
               : "memory");
  return old;
}
GPUNVME_FN u64 compare_exchange_acquire(u64* p, u64 expected, u64 desired) {
  u64 old;
  asm volatile("atom.acquire.gpu.global.cas.b64 %0, [%1], %2, %3;"
               : "=l"(old)
               : "l"(__cvta_generic_to_global(p)), "l"(expected), "l"(desired)
               : "memory");
  return old;
}
// Orders this thread's accesses before it with those after it, for all GPU threads.
GPUNVME_FN void fence_gpu() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// ---- memory shared with controllers and the host

GPUNVME_FN u32 load_system(const u32* p) {
  u32 v;
  asm volatile("ld.relaxed.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
  return v;
}
GPUNVME_FN Pair load_system(const Pair* p) {
  Pair v;
  asm volatile("ld.relaxed.sys.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p) : "memory");
  return v;
}
GPUNVME_FN Quad load_system(const Quad* p) {
  Quad v;
  asm volatile("ld.relaxed.sys.v4.u32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
  return v;
}
GPUNVME_FN Pair load_system_acquire(const Pair* p) {
  Pair v;
  asm volatile("ld.acquire.sys.v2.u32 {%0,%1}, [%2];" : "=r"(v.x), "=r"(v.y) : "l"(p) : "memory");
  return v;
}
GPUNVME_FN void store_system(u32* p, u32 v) {
  asm volatile("st.relaxed.sys.u32 [%0], %1;" ::"l"(p), "r"(v) : "memory");
}
GPUNVME_FN void store_system(Quad* p, Quad v) {
  asm volatile("st.relaxed.sys.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w) : "memory");
}
// Orders this thread's accesses before it with those after it, for the whole system. ~600 ns on an H200.
GPUNVME_FN void fence_system() { asm volatile("fence.acq_rel.sys;" ::: "memory"); }

// ---- registers on PCIe

// A device's register: stored once, never combined, never repeated (PTX ISA 8.2, ld/st.mmio; sm_70).
GPUNVME_FN void store_mmio(u32* p, u32 v) {
  asm volatile("st.mmio.relaxed.sys.global.u32 [%0], %1;" ::"l"(__cvta_generic_to_global(p)), "r"(v) : "memory");
}
GPUNVME_FN u32 load_mmio(const u32* p) {
  u32 v;
  asm volatile("ld.mmio.relaxed.sys.global.u32 %0, [%1];" : "=r"(v) : "l"(__cvta_generic_to_global(p)) : "memory");
  return v;
}

#else

GPUNVME_FN u32 load(const u32* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
GPUNVME_FN void store(u32* p, u32 v) { __atomic_store_n(p, v, __ATOMIC_RELEASE); }
GPUNVME_FN u64 load(const u64* p) { return __atomic_load_n(p, __ATOMIC_ACQUIRE); }
GPUNVME_FN u32 load_acquire(const u32* p) { return load(p); }
GPUNVME_FN u32 fetch_add(u32* p, u32 v) { return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL); }
GPUNVME_FN u64 fetch_add(u64* p, u64 v) { return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL); }
GPUNVME_FN u32 fetch_and_acquire(u32* p, u32 v) { return __atomic_fetch_and(p, v, __ATOMIC_ACQ_REL); }
GPUNVME_FN void or_release(u32* p, u32 v) { __atomic_fetch_or(p, v, __ATOMIC_ACQ_REL); }
GPUNVME_FN u64 fetch_add_acquire(u64* p, u64 v) { return fetch_add(p, v); }
GPUNVME_FN Words load(const Words* p) { return {load(&p->x), load(&p->y)}; }
GPUNVME_FN u64 fetch_or(u64* p, u64 v) { return __atomic_fetch_or(p, v, __ATOMIC_ACQ_REL); }
GPUNVME_FN void add(u64* p, u64 v) { fetch_add(p, v); }
GPUNVME_FN void count(u64* p) { __atomic_fetch_add(p, 1, __ATOMIC_RELAXED); }
GPUNVME_FN void set_bits(u64* p, u64 v) { __atomic_fetch_or(p, v, __ATOMIC_ACQ_REL); }
GPUNVME_FN void clear_bits(u64* p, u64 v) { __atomic_fetch_and(p, ~v, __ATOMIC_ACQ_REL); }
GPUNVME_FN u64 exchange(u64* p, u64 v) { return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL); }
GPUNVME_FN u32 compare_exchange(u32* p, u32 expected, u32 desired) {
  __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
GPUNVME_FN u64 compare_exchange(u64* p, u64 expected, u64 desired) {
  __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
GPUNVME_FN u64 compare_exchange_acquire(u64* p, u64 expected, u64 desired) { return compare_exchange(p, expected, desired); }
GPUNVME_FN u32 exchange(u32* p, u32 v) { return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL); }
GPUNVME_FN u32 fetch_min(u32* p, u32 v) {
  u32 is = __atomic_load_n(p, __ATOMIC_ACQUIRE);
  while (v < is && !__atomic_compare_exchange_n(p, &is, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  return is;
}
GPUNVME_FN void add(double* p, double v) {
  double is;
  __atomic_load(p, &is, __ATOMIC_ACQUIRE);
  double sum = is + v;
  while (!__atomic_compare_exchange(p, &is, &sum, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
    sum = is + v;
  }
}
// The loads acquire and the stores release already.
GPUNVME_FN void fence_gpu() {}

GPUNVME_FN u32 load_system(const u32* p) { return load(p); }
GPUNVME_FN Pair load_system(const Pair* p) {
  u32 y = load(&p->y);  // the word with the phase first
  return {load(&p->x), y};
}
GPUNVME_FN Quad load_system(const Quad* p) { return {load(&p->x), load(&p->y), load(&p->z), load(&p->w)}; }
GPUNVME_FN Pair load_system_acquire(const Pair* p) { return load_system(p); }
GPUNVME_FN void store_system(u32* p, u32 v) { store(p, v); }
GPUNVME_FN void store_system(Quad* p, Quad v) {
  store(&p->x, v.x);
  store(&p->y, v.y);
  store(&p->z, v.z);
  store(&p->w, v.w);
}
GPUNVME_FN void fence_system() {}

GPUNVME_FN void store_mmio(u32* p, u32 v) { store(p, v); }
GPUNVME_FN u32 load_mmio(const u32* p) { return load(p); }

#endif

// A value of 16 bytes or fewer by one load, from where all GPU threads see the same.
template <class T>
GPUNVME_FN T load_value(const T* p) {
  static_assert(sizeof(T) <= 16, "loaded by one instruction");
#if GPUNVME_GPU
  T value;
  if constexpr (sizeof(T) == 16) {
    Words words = load(reinterpret_cast<const Words*>(p));
    memcpy(&value, &words, sizeof(T));
  } else if constexpr (sizeof(T) == 8) {
    u64 word = load(reinterpret_cast<const u64*>(p));
    memcpy(&value, &word, sizeof(T));
  } else if constexpr (sizeof(T) == 4) {
    u32 word = load(reinterpret_cast<const u32*>(p));
    memcpy(&value, &word, sizeof(T));
  } else if constexpr (sizeof(T) == 2) {
    u16 word = *reinterpret_cast<const volatile u16*>(p);
    memcpy(&value, &word, sizeof(T));
  } else {
    static_assert(sizeof(T) == 1, "a power of two");
    u8 word = *reinterpret_cast<const volatile u8*>(p);
    memcpy(&value, &word, sizeof(T));
  }
  return value;
#else
  return *p;
#endif
}

// Copies a multiple of 128 bytes, from and to multiples of 16. Eight loads are under way at a time: from host memory each takes a
// microsecond.
GPUNVME_FN void copy_page(char* to, const char* from, u32 bytes) {
  GPUNVME_ROLLED
  for (u32 left = bytes; left != 0; left -= 8 * sizeof(Words)) {
    Words some[8];
    GPUNVME_UNROLLED(8)
    for (u32 i = 0; i < 8; i++) {
      some[i] = reinterpret_cast<const Words*>(from)[i];
    }
    GPUNVME_UNROLLED(8)
    for (u32 i = 0; i < 8; i++) {
      reinterpret_cast<Words*>(to)[i] = some[i];
    }
    from += sizeof some;
    to += sizeof some;
  }
}

}  // namespace mem
}  // namespace gpunvme
