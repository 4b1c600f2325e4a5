#pragma once
// Files by their bytes. The host has looked up where they are (KernelStorage.file and directory); kernels read them.
#include "set.cuh"

namespace gpunvme {

// Bytes of a file that follow each other in its set: from `offset` on, up to the next extent or the end of the file.
struct FileExtent {
  u64 offset;  // of the first byte in the file
  u64 block;   // of the set, that begins with it, or kHole: zeroes that are nowhere

  static constexpr u64 kHole = ~0ull;
};
static_assert(sizeof(FileExtent) == 16, "layout shared with the host");

struct alignas(32) DeviceFile {
  u64 size;                   // bytes
  const FileExtent* extents;  // by offset, the first at 0
  const DeviceSet* set;       // that it is on
  u32 extent_count;           // at least 1
  u32 reserved0;

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
static_assert(sizeof(DeviceFile) == 32, "layout shared with the host");

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

// Whether a range of a file and its places are as read_file() wants them, with so many scratch blocks that follow each other.
GPUNVME_FN bool inside(const Storage& storage, const DeviceFile& file, u64 offset, u64 bytes, Place to, Place scratch,
                       u32 scratch_blocks) {
  u64 aside = static_cast<u64>(scratch_blocks) << file.set->block_shift;
  return offset <= file.size && bytes <= file.size - offset && storage.has(to, bytes) && storage.has(scratch, aside) &&
         (scratch.offset & 3) == 0 &&
         !(to.buffer == scratch.buffer && to.offset < scratch.offset + aside && scratch.offset < to.offset + bytes);
}

}  // namespace detail

// Reads `bytes` bytes of a file from `offset` on, any number from any byte on; kArgument if they are not all inside the file and
// the buffer. Whole blocks whose place in the buffer is a multiple of 4 go there by themselves, as in read() of a set. What is
// left, so the ends of most ranges, is read a block at a time to `scratch` and copied by this thread: others see it as they see
// the thread's stores. The scratch is one block of a registered buffer (1 << file.set->block_shift bytes), at a multiple of 4,
// outside the range's own place (else kArgument), and no other thread uses it meanwhile. Returns when the data is there, or with
// the first failure, after which any part of it may be. After kTimeout and kStopped the scratch, too, is the SSD's until its
// queue is recovered: a read that is given it before may copy what arrives late.
template <bool kHelps>
GPUNVME_FN Status read_file(CallersQueues<kHelps> queues, const DeviceFile& file, u64 offset, u64 bytes, Place to,
                            Place scratch) {
  const Storage& storage = queues.storage;
  const DeviceSet& set = *file.set;
  if (!detail::inside(storage, file, offset, bytes, to, scratch, 1)) {
    return status::kArgument;
  }
  u64 block = 1ull << set.block_shift;
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
      Status s = read(queues, set, first + (within >> set.block_shift), direct ? n >> set.block_shift : 1,
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

namespace detail {

// A thread's part of a range that some threads read together: every so many steps one. A step begins at a multiple of its bytes
// in the file, so what is inside are whole blocks.
template <bool kHelps>
GPUNVME_FN Status part(CallersQueues<kHelps> queues, const DeviceFile& file, u64 offset, u64 bytes, Place to, Place scratch,
                       u32 number, u32 threads) {
  if (!inside(queues.storage, file, offset, bytes, to, scratch, threads)) {
    return status::kArgument;
  }
  u32 shift = file.set->step_shift + file.set->block_shift;
  u64 end = offset + bytes;
  scratch.offset += static_cast<u64>(number) << file.set->block_shift;
  GPUNVME_ROLLED
  for (u64 step = (offset >> shift) + number; step << shift < end; step += threads) {
    u64 from = step << shift < offset ? offset : step << shift;
    u64 next = (step + 1) << shift;
    Status s = read_file(queues, file, from, (next < end ? next : end) - from, {to.buffer, to.offset + (from - offset)}, scratch);
    if (failed(s)) {
      return s;
    }
  }
  return status::kSuccess;
}

}  // namespace detail

// A range of a file read by a whole warp, whose lanes read parts of it side by side, on all SSDs of its set. All lanes call, with
// the same arguments. All get the same status, a failure of any of them if there is one, and all see the data. `scratch` is
// where 32 blocks begin, one for each lane; all else is as for read_file().
template <bool kHelps>
GPUNVME_FN Status read_file_warp(CallersQueues<kHelps> queues, const DeviceFile& file, u64 offset, u64 bytes, Place to,
                                 Place scratch) {
  return detail::all_of_warp(detail::part(queues, file, offset, bytes, to, scratch, warp::lane(), warp::kWidth));
}

// The same by all threads of a block of whole warps, at most 32, with a scratch block for each thread.
template <bool kHelps>
GPUNVME_FN Status read_file_block(CallersQueues<kHelps> queues, const DeviceFile& file, u64 offset, u64 bytes, Place to,
                                  Place scratch) {
  return detail::all_of_block(
      detail::part(queues, file, offset, bytes, to, scratch, detail::number_in_block(), detail::threads_of_block()));
}

}  // namespace gpunvme
