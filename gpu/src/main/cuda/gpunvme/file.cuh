#pragma once
// Files by their bytes. The host has looked up where they are (KernelStorage.file); kernels read them.
#include "set.cuh"

namespace gpunvme {

// Bytes of a file that follow each other in its set: from `offset` on, up to the next extent or the end of the file.
struct FileExtent {
  u64 offset;  // of the first byte in the file
  u64 block;   // of the set, that begins with it, or kHole: zeroes that are nowhere

  static constexpr u64 kHole = ~0ull;
};
static_assert(sizeof(FileExtent) == 16, "layout shared with the host");

struct alignas(64) DeviceFile {
  u64 size;                   // bytes
  const FileExtent* extents;  // by offset, the first at 0
  u32 extent_count;           // at least 1
  u32 reserved0;
  u64 reserved1[5];
  DeviceSet set;              // that it is on

  // The number of the extent that has this byte of the file.
  GPUNVME_FN u32 find(u64 offset) const {
    u32 found = 0;
    GPUNVME_ROLLED
    for (u32 end = extent_count; end - found > 1;) {
      u32 middle = found + (end - found) / 2;
      if (extents[middle].offset <= offset) {
        found = middle;
      } else {
        end = middle;
      }
    }
    return found;
  }
};
static_assert(sizeof(DeviceFile) == 128, "layout shared with the host");

namespace detail {

// Moves bytes by this thread's own loads and stores; zeroes where there is no `from`.
GPUNVME_FN void put(char* to, const char* from, u64 bytes) {
  bool words = ((reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from)) & 3) == 0;
  u64 at = 0;
  GPUNVME_ROLLED
  for (; words && bytes - at >= 4; at += 4) {
    *reinterpret_cast<u32*>(to + at) = from == nullptr ? 0 : *reinterpret_cast<const u32*>(from + at);
  }
  GPUNVME_ROLLED
  for (; at != bytes; at++) {
    to[at] = from == nullptr ? 0 : from[at];
  }
}

}  // namespace detail

// Reads `bytes` bytes of a file from `offset` on, any number from any byte on; kArgument if they are not all inside the file and
// the buffer. Whole blocks whose place in the buffer is a multiple of 4 go there by themselves, as in read() of a set. What is
// left, so the ends of most ranges, is read a block at a time to `scratch` and copied by this thread: others see it as they see
// the thread's stores. The scratch is one block of a registered buffer (1 << file.set.block_shift bytes), at a multiple of 4,
// outside the range's own place (else kArgument), and no other thread uses it meanwhile. Returns when the data is there, or with
// the first failure, after which any part of it may be. After kTimeout and kStopped the scratch, too, is the SSD's until its
// queue is recovered: a read that is given it before may copy what arrives late.
template <bool kHelps>
GPUNVME_FN Status read_file(CallersQueues<kHelps> queues, const DeviceFile& file, u64 offset, u64 bytes, Place to,
                            Place scratch) {
  const Storage& storage = queues.storage;
  u64 block = 1ull << file.set.block_shift;
  if (offset > file.size || bytes > file.size - offset || !storage.has(to, bytes) || !storage.has(scratch, block) ||
      (scratch.offset & 3) != 0 ||
      (to.buffer == scratch.buffer && to.offset < scratch.offset + block && scratch.offset < to.offset + bytes)) {
    return status::kArgument;
  }
  const char* aside = static_cast<const char*>(storage.buffer(scratch.buffer, 0).memory) + scratch.offset;
  u64 end = offset + bytes;
  u32 i = file.find(offset);
  GPUNVME_ROLLED
  while (offset != end) {
    u64 first = file.extents[i].block;
    u64 within = offset - file.extents[i].offset;
    u64 next = i + 1 < file.extent_count ? file.extents[i + 1].offset : file.size;
    u64 n = (next < end ? next : end) - offset;
    u64 head = within & (block - 1);
    char* target = static_cast<char*>(storage.buffer(to.buffer, 0).memory) + to.offset;
    if (first == FileExtent::kHole) {
      detail::put(target, nullptr, n);
    } else {
      // One call for both: each takes the whole read path's machine code.
      bool direct = head == 0 && n >= block && (to.offset & 3) == 0;
      Status s = read(queues, file.set, first + (within >> file.set.block_shift), direct ? n >> file.set.block_shift : 1,
                      direct ? to : scratch);
      if (failed(s)) {
        return s;
      }
      if (direct) {
        n &= ~(block - 1);
      } else {
        n = n < block - head ? n : block - head;
        detail::put(target, aside + head, n);
      }
    }
    offset += n;
    to.offset += n;
    i += offset == next ? 1 : 0;
  }
  return status::kSuccess;
}

}  // namespace gpunvme
