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

// Bytes of a registered buffer from an offset on.
struct Place {
  u32 buffer;  // its number
  u64 offset;
};

template <bool>
struct CallersQueues;
using SharedQueues = CallersQueues<true>;
using ServedQueues = CallersQueues<false>;

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

  // Whether so many bytes of a registered buffer are there. It has the same for each SSD.
  GPUNVME_FN bool has(Place place, u64 bytes) const {
    if (place.buffer >= buffer_count / namespace_count) {
      return false;
    }
    u64 size = buffer(place.buffer, 0).size;
    return place.offset <= size && bytes <= size - place.offset;
  }

  // The queue pair that a caller's number falls to; callers with neighbouring numbers share one as little as possible.
  GPUNVME_FN SharedQueue queue(const Namespace& ns, u32 number) const {
    return SharedQueue(ns.queues + number % ns.queue_count, stop);
  }

  // The same for callers that do not serve: see serve() in server.cuh.
  GPUNVME_FN ServedQueue served_queue(const Namespace& ns, u32 number) const {
    return ServedQueue(ns.queues + number % ns.queue_count, stop);
  }

  // The same of every SSD, for calls that find out by themselves which SSD they need (set.cuh, file.cuh).
  GPUNVME_FN SharedQueues queues(u32 number) const;
  GPUNVME_FN ServedQueues served_queues(u32 number) const;
};
static_assert(sizeof(Storage) == 64, "layout shared with the host");

// A caller's queue pair at each SSD.
template <bool kHelps>
struct CallersQueues {
  const Storage& storage;
  u32 number;  // the caller's

  GPUNVME_FN CallersQueue<kHelps> of(const Namespace& ns) const {
    return CallersQueue<kHelps>(ns.queues + number % ns.queue_count, storage.stop);
  }
};

GPUNVME_FN SharedQueues Storage::queues(u32 number) const { return {*this, number}; }
GPUNVME_FN ServedQueues Storage::served_queues(u32 number) const { return {*this, number}; }

// Commands of one thread that may be under way at once in the calls below.
constexpr u32 kPipeline = 4;

namespace detail {

// What is left of a range.
struct Rest {
  u64 slba;
  u64 blocks;
  u64 offset;

  GPUNVME_FN void advance(u32 n, u32 block_shift) {
    slba += n;
    blocks -= n;
    offset += static_cast<u64>(n) << block_shift;
  }
};

// Whether a range of any length is within the namespace and the buffer.
GPUNVME_FN bool inside(const Namespace& ns, u64 slba, u64 blocks, const Buffer& buffer, u64 offset) {
  return slba < ns.blocks && blocks <= ns.blocks - slba && (offset & 3) == 0 && offset <= buffer.size &&
         blocks <= (buffer.size - offset) >> ns.block_shift;
}

// Where the commands of a range go: to a namespace, by one queue pair. SetTarget (set.cuh) is the same for several SSDs.
template <bool kHelps>
struct Target {
  const Namespace& ns;
  CallersQueue<kHelps> only;
  const Buffer& buffer;

  GPUNVME_FN u32 block_shift() const { return ns.block_shift; }

  // How many of the blocks the next command takes.
  GPUNVME_FN u32 next(const Rest& rest) const {
    return rest.blocks < ns.max_blocks ? static_cast<u32>(rest.blocks) : ns.max_blocks;
  }

  // The command for the next n blocks, or kArgument. A range that takes several was found inside() before.
  GPUNVME_FN Status describe(u32 op, const Rest& rest, u32 n, Command& c) const {
    return ns.describe(op, rest.slba, n, buffer, rest.offset, c);
  }

  GPUNVME_FN bool inside(const Rest& rest) const { return detail::inside(ns, rest.slba, rest.blocks, buffer, rest.offset); }

  // The blocks of a range that its i-th command takes where several threads share the range; 0 behind the last.
  GPUNVME_FN Rest piece(const Rest& all, u64 i) const {
    Rest piece = all;
    u64 at = i * ns.max_blocks;
    u64 left = at < all.blocks ? all.blocks - at : 0;
    piece.slba += at;
    piece.blocks = left < ns.max_blocks ? left : ns.max_blocks;
    piece.offset += at << ns.block_shift;
    return piece;
  }

  // By which queue pair the next command goes, and by which one that is under way went.
  GPUNVME_FN CallersQueue<kHelps> queue(const Rest&) const { return only; }
  GPUNVME_FN CallersQueue<kHelps> queue(const Token&) const { return only; }
};

// Up to kPipeline commands in flight, until the range is done or the first failure, which is returned; what is in flight then is
// waited for first. kBusy with nothing in flight and the rest in `rest` if there is no slot: a caller that has commands in flight
// never waits for another slot, as all slots could be held by callers that do.
template <class Where>
GPUNVME_NOINLINE Status range(Where target, u32 op, Rest& rest) {
  Token tokens[kPipeline];
  u32 begun = 0;
  u32 over = 0;
  Status first = status::kSuccess;
  GPUNVME_ROLLED
  while (rest.blocks != 0 || over != begun) {
    while (first == status::kSuccess && rest.blocks != 0 && begun - over != kPipeline) {
      u32 n = target.next(rest);
      Command c;
      Status s = target.describe(op, rest, n, c);
      s = failed(s) ? s : target.queue(rest).try_submit(c, tokens[begun % kPipeline]);
      if (failed(s)) {
        first = s == status::kBusy && begun != over ? first : s;
        break;
      }
      begun++;
      rest.advance(n, target.block_shift());
    }
    if (over == begun) {
      break;
    }
    Token& token = tokens[over % kPipeline];
    Status s = target.queue(token).wait(token);
    over++;
    first = failed(s) && first == status::kSuccess ? s : first;
  }
  return first;
}

// A range of any length. What one command takes is the path that most callers take.
template <class Where>
GPUNVME_FN Status block(Where target, u32 op, Rest rest) {
  u32 n = target.next(rest);
  if (n != rest.blocks && !target.inside(rest)) {
    return status::kArgument;
  }
  GPUNVME_ROLLED
  for (;; n = target.next(rest)) {
    if (n != rest.blocks) {
      Rest after = rest;
      Status s = range(target, op, after);
      rest = after;
      if (s != status::kBusy) {
        return s;
      }
      n = target.next(rest);
    }
    Command c;
    Status s = target.describe(op, rest, n, c);
    s = failed(s) ? s : target.queue(rest).execute(c);
    if (failed(s) || n == rest.blocks) {
      return s;
    }
    rest.advance(n, target.block_shift());
  }
}

template <bool kHelps>
GPUNVME_FN Status block(const Namespace& ns, CallersQueue<kHelps> queue, u32 op, u64 slba, u64 blocks, const Buffer& buffer,
                        u64 offset) {
  return block(Target<kHelps>{ns, queue, buffer}, op, {slba, blocks, offset});
}

// A thread's part of a range that some threads read together: every so many commands one.
template <class Where>
GPUNVME_FN Status part(Where target, const Rest& all, u32 number, u32 threads) {
  if (all.blocks == 0 || !target.inside(all)) {
    return status::kArgument;
  }
  GPUNVME_ROLLED
  for (u64 i = number;; i += threads) {
    Rest piece = target.piece(all, i);
    if (piece.blocks == 0) {
      return status::kSuccess;
    }
    Command c;
    Status s = target.describe(opcode::kRead, piece, static_cast<u32>(piece.blocks), c);
    s = failed(s) ? s : target.queue(piece).execute(c);
    if (failed(s)) {
      return s;
    }
  }
}

// What a whole warp makes of its lanes' parts: the same status for all. Each lane has acquired its own part before.
GPUNVME_FN Status all_of_warp(Status s) {
  warp::sync(warp::kFull);
  u32 bad = warp::ballot(warp::kFull, failed(s));
  return bad == 0 ? static_cast<Status>(status::kSuccess) : warp::shuffle(warp::kFull, s, warp::lowest(bad));
}

// The same of all threads of a block.
GPUNVME_FN Status all_of_block(Status s) {
  bool bad = failed(s);
  if (block::count(bad) == 0) {
    return status::kSuccess;
  }
  // The largest of the failures, a bit at a time: statuses have 16.
  Status largest = 0;
  GPUNVME_ROLLED
  for (u32 bit = 1u << 15; bit != 0; bit >>= 1) {
    if (block::count(bad && (s & bit) != 0) != 0) {
      largest |= bit;
      bad = bad && (s & bit) != 0;
    }
  }
  return largest;
}

// A thread's number in its block, and how many there are.
GPUNVME_FN u32 number_in_block() { return block::index() * warp::kWidth + warp::lane(); }
GPUNVME_FN u32 threads_of_block() { return block::warps() * warp::kWidth; }

}  // namespace detail

// All of these take a SharedQueue or a ServedQueue.

// Reads `blocks` logical blocks from `slba` on into the buffer at `offset` bytes, a multiple of 4. Any length: longer
// ranges than one command takes are split. Returns when the data is there, or with the first failure, after which any
// part of a split range may have been moved.
template <bool kHelps>
GPUNVME_FN Status read(const Namespace& ns, CallersQueue<kHelps> queue, u64 slba, u64 blocks, const Buffer& buffer, u64 offset) {
  return detail::block(ns, queue, opcode::kRead, slba, blocks, buffer, offset);
}

// One command's worth of a read, at most ns.max_blocks; kArgument for more. Two thirds of the registers and of the machine code
// of read(), or less (docs/device-library.md).
template <bool kHelps>
GPUNVME_FN Status read_one(const Namespace& ns, CallersQueue<kHelps> queue, u64 slba, u64 blocks, const Buffer& buffer,
                           u64 offset) {
  Command c;
  Status s = blocks > ns.max_blocks ? static_cast<Status>(status::kArgument)
                                    : ns.describe(opcode::kRead, slba, static_cast<u32>(blocks), buffer, offset, c);
  return failed(s) ? s : queue.execute(c);
}

// A range of any length read by a whole warp, whose lanes have its commands under way side by side. All lanes call, with the
// same arguments. All get the same status, a failure of any of them if there is one, and all see the data.
template <bool kHelps>
GPUNVME_FN Status read_warp(const Namespace& ns, CallersQueue<kHelps> queue, u64 slba, u64 blocks, const Buffer& buffer,
                            u64 offset) {
  detail::Target<kHelps> target = {ns, queue, buffer};
  return detail::all_of_warp(detail::part(target, {slba, blocks, offset}, warp::lane(), warp::kWidth));
}

// The same by all threads of a block of whole warps, at most 32.
template <bool kHelps>
GPUNVME_FN Status read_block(const Namespace& ns, CallersQueue<kHelps> queue, u64 slba, u64 blocks, const Buffer& buffer,
                             u64 offset) {
  detail::Target<kHelps> target = {ns, queue, buffer};
  return detail::all_of_block(
      detail::part(target, {slba, blocks, offset}, detail::number_in_block(), detail::threads_of_block()));
}

// The other direction of read(). The caller's stores to the buffer come before the command.
template <bool kHelps>
GPUNVME_FN Status write(const Namespace& ns, CallersQueue<kHelps> queue, u64 slba, u64 blocks, const Buffer& buffer, u64 offset) {
  return detail::block(ns, queue, opcode::kWrite, slba, blocks, buffer, offset);
}

// Compares blocks with the buffer; Compare Failure if they differ: SCT and SC, the low 11 bits of the status, are 285h.
template <bool kHelps>
GPUNVME_FN Status compare(const Namespace& ns, CallersQueue<kHelps> queue, u64 slba, u64 blocks, const Buffer& buffer,
                          u64 offset) {
  return detail::block(ns, queue, opcode::kCompare, slba, blocks, buffer, offset);
}

// One command's worth of a read, at most ns.max_blocks, without waiting for it.
template <bool kHelps>
GPUNVME_FN Status read_async(const Namespace& ns, CallersQueue<kHelps> queue, u64 slba, u32 blocks, const Buffer& buffer,
                             u64 offset, Token& token) {
  Command c;
  Status s = ns.describe(opcode::kRead, slba, blocks, buffer, offset, c);
  return failed(s) ? s : queue.submit(c, token);
}

template <bool kHelps>
GPUNVME_FN Status write_async(const Namespace& ns, CallersQueue<kHelps> queue, u64 slba, u32 blocks, const Buffer& buffer,
                              u64 offset, Token& token) {
  Command c;
  Status s = ns.describe(opcode::kWrite, slba, blocks, buffer, offset, c);
  return failed(s) ? s : queue.submit(c, token);
}

// Makes written blocks durable.
template <bool kHelps>
GPUNVME_FN Status flush(const Namespace& ns, CallersQueue<kHelps> queue) {
  return queue.execute({opcode::kFlush, ns.nsid, 0, 0, 0, 0, 0, 0});
}

// Zeroes up to 65536 blocks without moving data.
template <bool kHelps>
GPUNVME_FN Status write_zeroes(const Namespace& ns, CallersQueue<kHelps> queue, u64 slba, u32 blocks) {
  if (blocks == 0 || blocks > 65536 || slba >= ns.blocks || blocks > ns.blocks - slba) {
    return status::kArgument;
  }
  return queue.execute({opcode::kWriteZeroes, ns.nsid, slba, blocks, 0, 0, 0, 0});
}

}  // namespace gpunvme
