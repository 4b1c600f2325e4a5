// Marks on memory of the GPU, by which it is found behind a BAR: PageCut says where they lie, MarkKey what they are. The CPU's
// compiler compiles this too, for a test.
#include "gpunvme/platform.cuh"

using namespace gpunvme;

// Filled in by CudaPageMarks.
struct Marked {
  u64 memory;       // address, a multiple of 4096
  u64 page_offset;  // where on its first page of 64 KiB it begins
  u64 bytes;
  u64 numbers;      // of marks: kMarks for each page
};

struct Key {
  u64 low;
  u64 high;
};

struct Mark {
  u64 first;
  u64 second;
};

namespace {

constexpr u64 kPage = 64 << 10;
constexpr u64 kGranule = 4096;
constexpr u64 kMarks = kPage / kGranule + 1;
constexpr u64 kStep = 0x9e3779b97f4a7c15;

__device__ u64 threads() { return static_cast<u64>(gridDim.x) * blockDim.x; }
__device__ u64 thread() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }

__device__ u64 mix(u64 word) {
  u64 x = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

__device__ Mark mark(const Key& key, u64 number) {
  return {mix(key.low + number * kStep), mix(key.high + number * kStep)};
}

// Where a mark is; null where the memory has less than the whole page.
__device__ Mark* place(const Marked& m, u64 number) {
  u64 page = number / kMarks;
  u64 i = number % kMarks;
  u64 start = page == 0 ? 0 : page * kPage - m.page_offset;
  u64 end = (page + 1) * kPage - m.page_offset;
  if (end > m.bytes) {
    end = m.bytes;
  }
  u64 at = i == kMarks - 1 ? end - sizeof(Mark) : start + i * kGranule;
  return at < end ? reinterpret_cast<Mark*>(m.memory + at) : nullptr;
}

}  // namespace

extern "C" __global__ void __launch_bounds__(256) gpunvme_marks_write(Marked m, Key key) {
  for (u64 number = thread(); number < m.numbers; number += threads()) {
    Mark* there = place(m, number);
    if (there != nullptr) {
      *there = mark(key, number);
    }
  }
}

// The lowest number of a mark that is another; *wrong has been all ones.
extern "C" __global__ void __launch_bounds__(256) gpunvme_marks_check(Marked m, Key key, u64* wrong) {
  for (u64 number = thread(); number < m.numbers; number += threads()) {
    const Mark* there = place(m, number);
    if (there != nullptr) {
      Mark expected = mark(key, number);
      if (there->first != expected.first || there->second != expected.second) {
        atomicMin(wrong, number);
      }
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) gpunvme_marks_save(Marked m, Mark* saved) {
  for (u64 number = thread(); number < m.numbers; number += threads()) {
    const Mark* there = place(m, number);
    if (there != nullptr) {
      saved[number] = *there;
    }
  }
}

extern "C" __global__ void __launch_bounds__(256) gpunvme_marks_restore(Marked m, const Mark* saved) {
  for (u64 number = thread(); number < m.numbers; number += threads()) {
    Mark* there = place(m, number);
    if (there != nullptr) {
      *there = saved[number];
    }
  }
}
