#pragma once
// Block and range I/O on registered buffers: what most kernels call.
#include "shared.cuh"

namespace gpunvme {

// Memory that a controller may reach, registered by the host (KernelStorage.register). Described page by page, with PRP lists
// for transfers of any length.
struct alignas(64) Buffer {
  u64 size;        // bytes
  u64 bus;         // bus address of the first byte if all pages follow each other, else 0
  const u64* pages;  // bus address of each page, or null if they follow each other
  const u64* lists;  // bus address of each list page, see prp
  void* memory;    // as this GPU addresses it
  u32 page_shift;  // log2 of the controller's memory page size
  u32 reserved0;
  u64 reserved1[2];

  GPUNVME_FN u64 page(u64 index) const { return pages != nullptr ? pages[index] : bus + (index << page_shift); }
};
static_assert(sizeof(Buffer) == 64, "layout shared with the host");

// PRP lists of a buffer, built once by the host (PrpLists.java; Base 2.0, 4.1.1). Entry e is page e + 1. A list page has as
// many slots of 8 bytes as fit, and all but the last hold entries. The last points to the next list page of the chain. A
// controller that needs one entry more when it comes to the last slot takes the slot for that entry, though. So no transfer
// may end in the first entry of a list page that it was led to.
//
// That is why there are two chains, the second shifted by half a page: its first list page begins with empty slots. A
// transfer uses the chain in which it ends in the later half of a list page. Then no list of up to half a page's slots
// follows a pointer: with pages of 4 KiB none of up to 257 pages, 1 MiB at any offset.
//
// Buffer::lists names list page k of chain c at 2 k + c. Where all entries fit into one list page, there is only that one.
namespace prp {

// Bus address of the list of `count` entries from entry `first` on.
GPUNVME_FN u64 list(const Buffer& b, u32 first, u32 count) {
  u32 half = 1u << (b.page_shift - 4);
  u32 per_page = 2 * half - 1;
  u32 last = first + count - 1;
  u32 chain = last >= per_page && last % per_page < half - 1 ? 1 : 0;
  u32 start = first + chain * half;
  return b.lists[start / per_page * 2 + chain] + start % per_page * 8;
}

// PRP entries for `bytes` bytes from `offset` on. The caller has checked the range and that offset is a multiple of 4.
GPUNVME_FN void entries(const Buffer& b, u64 offset, u64 bytes, u64& prp1, u64& prp2) {
  u64 page_bytes = 1ull << b.page_shift;
  u64 first = offset >> b.page_shift;
  u64 within = offset & (page_bytes - 1);
  u64 count = (within + bytes + page_bytes - 1) >> b.page_shift;
  prp1 = b.page(first) + within;
  prp2 = 0;
  if (count == 2) {
    prp2 = b.page(first + 1);
  } else if (count > 2) {
    prp2 = list(b, static_cast<u32>(first), static_cast<u32>(count - 1));
  }
}
}  // namespace prp

// A namespace and the queues that lead to it.
struct alignas(64) Namespace {
  u64 blocks;
  u32 nsid;
  u32 block_shift;   // log2 of the block's bytes
  u32 max_blocks;    // of one command: MDTS and the host's limit; 65536 at most
  u32 queue_count;
  Queue* queues;     // queue_count of them
  u64 reserved[4];

  // The command for `blocks` blocks, or kArgument.
  GPUNVME_FN Status describe(u32 op, u64 slba, u32 count, const Buffer& buffer, u64 offset, Command& c) const {
    u64 bytes = static_cast<u64>(count) << block_shift;
    if (count == 0 || count > max_blocks || slba >= blocks || count > blocks - slba || (offset & 3) != 0 ||
        offset > buffer.size || bytes > buffer.size - offset) {
      return status::kArgument;
    }
    c = {op, nsid, slba, count, 0, 0, 0, 0};
    prp::entries(buffer, offset, bytes, c.prp1, c.prp2);
    return status::kSuccess;
  }
};
static_assert(sizeof(Namespace) == 64, "layout shared with the host");

// What a kernel is given: KernelStorage.deviceHandle(). Several SSDs are several namespaces.
struct alignas(64) Storage {
  u32 version;  // kVersion
  u32 namespace_count;
  const Namespace* namespaces;
  const Buffer* buffers;  // see buffer()
  u32 buffer_count;
  u32 reserved0;
  const u32* stop;  // ends this kernel's waits; null: the queues' own words do
  u64 reserved1[3];

  static constexpr u32 kVersion = 1;

  // The registered buffer of this number (counted from 0 as KernelStorage.register counts) as the SSD of the other number reaches it.
  GPUNVME_FN const Buffer& buffer(u32 number, u32 ssd) const { return buffers[number * namespace_count + ssd]; }

  // The queue pair that a caller's number falls to; callers with neighbouring numbers share one as little as possible.
  GPUNVME_FN SharedQueue queue(const Namespace& ns, u32 number) const {
    return SharedQueue(ns.queues + number % ns.queue_count, stop);
  }
};
static_assert(sizeof(Storage) == 64, "layout shared with the host");

// Commands of one thread that may be under way at once in the calls below.
constexpr u32 kPipeline = 4;

namespace detail {

// A range of any length as commands of at most max_blocks, up to kPipeline of them in flight. A caller that has commands in
// flight never waits for another slot: all slots could be held by callers that do. The first failure is returned; what is in
// flight then is waited for first.
GPUNVME_NOINLINE Status range(const Namespace& ns, SharedQueue queue, u32 op, u64 slba, u64 blocks, const Buffer& buffer,
                              u64 offset) {
  Token tokens[kPipeline];
  u32 begun = 0;
  u32 over = 0;
  Status first = status::kSuccess;
  while (blocks != 0 || over != begun) {
    bool full = begun - over == kPipeline;
    while (blocks != 0 && !full) {
      u32 n = blocks < ns.max_blocks ? static_cast<u32>(blocks) : ns.max_blocks;
      Command c;
      Status s = ns.describe(op, slba, n, buffer, offset, c);
      bool waited = false;
      if (!failed(s)) {
        s = queue.try_submit(c, tokens[begun % kPipeline]);
        if (s == status::kBusy) {
          if (begun != over) {
            break;
          }
          waited = true;
          s = queue.execute(c);
        }
      }
      if (failed(s)) {
        first = first == status::kSuccess ? s : first;
        blocks = 0;
        break;
      }
      begun++;
      over += waited ? 1 : 0;
      slba += n;
      blocks -= n;
      offset += static_cast<u64>(n) << ns.block_shift;
      full = begun - over == kPipeline;
    }
    if (over != begun) {
      Status s = queue.wait(tokens[over % kPipeline]);
      over++;
      if (failed(s)) {
        first = first == status::kSuccess ? s : first;
        blocks = 0;
      }
    }
  }
  return first;
}

GPUNVME_FN Status block(const Namespace& ns, SharedQueue queue, u32 op, u64 slba, u64 blocks, const Buffer& buffer,
                        u64 offset) {
  if (blocks > ns.max_blocks) {
    bool inside = slba < ns.blocks && blocks <= ns.blocks - slba && (offset & 3) == 0 && offset <= buffer.size &&
                  blocks <= (buffer.size - offset) >> ns.block_shift;
    return inside ? range(ns, queue, op, slba, blocks, buffer, offset) : static_cast<Status>(status::kArgument);
  }
  Command c;
  Status s = ns.describe(op, slba, static_cast<u32>(blocks), buffer, offset, c);
  return failed(s) ? s : queue.execute(c);
}

}  // namespace detail

// Reads `blocks` logical blocks from `slba` on into the buffer at `offset` bytes, a multiple of 4. Any length: longer
// ranges than one command takes are split. Returns when the data is there, or with the first failure, after which any
// part of a split range may have been moved.
GPUNVME_FN Status read(const Namespace& ns, SharedQueue queue, u64 slba, u64 blocks, const Buffer& buffer, u64 offset) {
  return detail::block(ns, queue, opcode::kRead, slba, blocks, buffer, offset);
}

// The other direction. The caller's stores to the buffer come before the command.
GPUNVME_FN Status write(const Namespace& ns, SharedQueue queue, u64 slba, u64 blocks, const Buffer& buffer, u64 offset) {
  return detail::block(ns, queue, opcode::kWrite, slba, blocks, buffer, offset);
}

// Compares blocks with the buffer; Compare Failure if they differ: SCT and SC, the low 11 bits of the status, are 285h.
GPUNVME_FN Status compare(const Namespace& ns, SharedQueue queue, u64 slba, u64 blocks, const Buffer& buffer, u64 offset) {
  return detail::block(ns, queue, opcode::kCompare, slba, blocks, buffer, offset);
}

// One command's worth of a read, at most ns.max_blocks, without waiting for it.
GPUNVME_FN Status read_async(const Namespace& ns, SharedQueue queue, u64 slba, u32 blocks, const Buffer& buffer, u64 offset,
                             Token& token) {
  Command c;
  Status s = ns.describe(opcode::kRead, slba, blocks, buffer, offset, c);
  return failed(s) ? s : queue.submit(c, token);
}

GPUNVME_FN Status write_async(const Namespace& ns, SharedQueue queue, u64 slba, u32 blocks, const Buffer& buffer, u64 offset,
                              Token& token) {
  Command c;
  Status s = ns.describe(opcode::kWrite, slba, blocks, buffer, offset, c);
  return failed(s) ? s : queue.submit(c, token);
}

// Makes written blocks durable.
GPUNVME_FN Status flush(const Namespace& ns, SharedQueue queue) {
  return queue.execute({opcode::kFlush, ns.nsid, 0, 0, 0, 0, 0, 0});
}

// Zeroes up to 65536 blocks without moving data.
GPUNVME_FN Status write_zeroes(const Namespace& ns, SharedQueue queue, u64 slba, u32 blocks) {
  if (blocks == 0 || blocks > 65536 || slba >= ns.blocks || blocks > ns.blocks - slba) {
    return status::kArgument;
  }
  return queue.execute({opcode::kWriteZeroes, ns.nsid, slba, blocks, 0, 0, 0, 0});
}

}  // namespace gpunvme
