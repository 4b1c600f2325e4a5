#pragma once
// The device library with threads that lose the processor now and then just before they change a word, so after they have looked at
// it, and while they copy a page. Such moments are too short to be met by chance. Included before anything else of the library.
#include "gpunvme/memory.cuh"

namespace gpunvme {
namespace mem {

// One change in so many; 0: none. Set while no thread runs.
inline u32 unsettled = 0;

inline void unsettle() {
  static thread_local u32 random = static_cast<u32>(reinterpret_cast<u64>(&random) >> 6);
  random = random * 1664525 + 1013904223;
  u32 chance = random >> 8;
  if (unsettled == 0 || chance % unsettled != 0) {
    return;
  }
  if (chance / unsettled % 8 == 0) {
    pause(20000);
  } else {
    sched_yield();
  }
}

inline u64 unsettled_fetch_or(u64* p, u64 v) {
  unsettle();
  return fetch_or(p, v);
}
inline u64 unsettled_fetch_add_acquire(u64* p, u64 v) {
  unsettle();
  return fetch_add_acquire(p, v);
}
inline u64 unsettled_compare_exchange_acquire(u64* p, u64 expected, u64 desired) {
  unsettle();
  return compare_exchange_acquire(p, expected, desired);
}
inline void unsettled_set_bits(u64* p, u64 v) {
  unsettle();
  set_bits(p, v);
}
inline void unsettled_copy_page(char* to, const char* from, u32 bytes) {
  unsettle();
  copy_page(to, from, bytes / 2);
  unsettle();
  copy_page(to + bytes / 2, from + bytes / 2, bytes / 2);
}
template <class T>
T unsettled_compare_exchange(T* p, T expected, T desired) {
  unsettle();
  return compare_exchange(p, expected, desired);
}

}  // namespace mem
}  // namespace gpunvme

#define fetch_or unsettled_fetch_or
#define fetch_add_acquire unsettled_fetch_add_acquire
#define compare_exchange_acquire unsettled_compare_exchange_acquire
#define compare_exchange unsettled_compare_exchange
#define set_bits unsettled_set_bits
#define copy_page unsettled_copy_page
#include "gpunvme/gpunvme.cuh"
#undef fetch_or
#undef fetch_add_acquire
#undef compare_exchange_acquire
#undef compare_exchange
#undef set_bits
#undef copy_page
