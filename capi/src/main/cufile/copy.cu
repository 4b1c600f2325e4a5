// Copies what descriptors say, by so many blocks each. A function in the order of the stream may fill them before this runs: so amounts and
// places need not be known when it is launched. One of the two sides is pinned memory of the host.
#include <stdint.h>

struct GpunvmeCuFileCopy {
  uint64_t to, from, bytes;
};

extern "C" __global__ void gpunvme_cufile_copy(const GpunvmeCuFileCopy *descriptors, uint32_t blocks) {
  const GpunvmeCuFileCopy *descriptor = descriptors + blockIdx.x / blocks;
  const uint64_t to = descriptor->to, from = descriptor->from, bytes = descriptor->bytes;
  const uint64_t first = uint64_t(blockIdx.x % blocks) * blockDim.x + threadIdx.x, step = uint64_t(blocks) * blockDim.x;
  uint64_t head = 0, middle = 0;
  // The library lays its side out so that both are off by the same.
  if ((to - from) % 16 == 0) {
    head = min(bytes, (16 - to % 16) % 16);
    middle = (bytes - head) / 16;
    const uint4 *source = reinterpret_cast<const uint4 *>(from + head);
    uint4 *target = reinterpret_cast<uint4 *>(to + head);
    uint64_t i = first;
    // Four loads of a thread are under way at a time: the host is far.
    for (; i + 3 * step < middle; i += 4 * step) {
      const uint4 a = source[i], b = source[i + step], c = source[i + 2 * step], d = source[i + 3 * step];
      target[i] = a;
      target[i + step] = b;
      target[i + 2 * step] = c;
      target[i + 3 * step] = d;
    }
    for (; i < middle; i += step) {
      target[i] = source[i];
    }
  }
  // What is left before and behind that.
  for (uint64_t i = first; i < bytes - 16 * middle; i += step) {
    const uint64_t at = i < head ? i : i + 16 * middle;
    reinterpret_cast<char *>(to)[at] = reinterpret_cast<const char *>(from)[at];
  }
}
