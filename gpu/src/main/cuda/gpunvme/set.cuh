#pragma once
// Stripes over several SSDs, as the address `stripe:` lays them out: unit 0 on the first member, unit 1 on the second, and around
// again. The host describes them (KernelStorage.set).
#include "io.cuh"

namespace gpunvme {

// Where a member's blocks begin.
struct SetMember {
  u64 slba;
  u32 ssd;  // the number of its namespace in Storage::namespaces
  u32 reserved0;
};
static_assert(sizeof(SetMember) == 16, "layout shared with the host");

// One namespace is a set of one member, with one unit.
struct alignas(64) DeviceSet {
  u64 blocks;                // of the set
  const SetMember* members;  // in their turn
  u64 inverse;               // 2^64 / member_count, rounded up: quotients by a multiplication; 0 for one member
  u32 member_count;
  u32 block_shift;           // log2 of a block's bytes: the largest of the members'
  u32 unit_shift;            // log2 of the blocks on one member before the next one's turn
  u32 max_blocks;            // of one command to any of the members
  u32 step_shift;            // log2 of the blocks that one command takes where several threads share a range: within a unit
  u32 reserved0;
  u64 reserved1[2];

  // Where a block of the set is: a member's number, and the block of that member, counted in blocks of the set.
  GPUNVME_FN u32 locate(u64 block, u64& within) const {
    u64 unit = block >> unit_shift;
    // Exact for fewer than 2^64 / member_count units, which the host has seen to.
    u64 row = inverse == 0 ? unit : multiply_high(unit, inverse);
    within = row << unit_shift | (block & ((1ull << unit_shift) - 1));
    return static_cast<u32>(unit - row * member_count);
  }
};
static_assert(sizeof(DeviceSet) == 64, "layout shared with the host");

namespace detail {

// Commands of a range of a set: each to the member whose unit it is.
template <bool kHelps>
struct SetTarget {
  CallersQueues<kHelps> queues;
  const DeviceSet& set;
  u32 buffer;

  GPUNVME_FN u32 block_shift() const { return set.block_shift; }

  GPUNVME_FN u32 next(const Rest& rest) const {
    u64 unit = 1ull << set.unit_shift;
    u64 left = unit - (rest.slba & (unit - 1));
    u64 n = left < rest.blocks ? left : rest.blocks;
    return n < set.max_blocks ? static_cast<u32>(n) : set.max_blocks;
  }

  GPUNVME_FN Status describe(u32 op, const Rest& rest, u32 n, Command& c) const {
    const Storage& storage = queues.storage;
    u64 block;
    const SetMember& member = set.members[set.locate(rest.slba, block)];
    const Namespace& ns = storage.namespaces[member.ssd];
    u32 finer = set.block_shift - ns.block_shift;
    return ns.describe(op, member.slba + (block << finer), n << finer, storage.buffer(buffer, member.ssd), rest.offset, c);
  }

  GPUNVME_FN bool inside(const Rest& rest) const {
    return rest.blocks != 0 && rest.slba < set.blocks && rest.blocks <= set.blocks - rest.slba && (rest.offset & 3) == 0 &&
           rest.blocks <= ~0ull >> set.block_shift && queues.storage.has({buffer, rest.offset}, rest.blocks << set.block_shift);
  }

  // Of a range in steps that begin at multiples of a step in the set: none crosses the end of a unit.
  GPUNVME_FN Rest piece(const Rest& all, u64 i) const {
    u64 end = all.slba + all.blocks;
    u64 step = (all.slba >> set.step_shift) + i;
    u64 from = step << set.step_shift;
    u64 to = (step + 1) << set.step_shift;
    from = from < all.slba ? all.slba : from;
    to = to < end ? to : end;
    return {from, from < to ? to - from : 0, all.offset + ((from - all.slba) << set.block_shift)};
  }

  GPUNVME_FN CallersQueue<kHelps> queue(const Rest& rest) const {
    u64 block;
    return queues.of(queues.storage.namespaces[set.members[set.locate(rest.slba, block)].ssd]);
  }

  GPUNVME_FN CallersQueue<kHelps> queue(const Token& token) const {
    return CallersQueue<kHelps>(token.queue(), queues.storage.stop);
  }
};

template <bool kHelps>
GPUNVME_FN Status block(CallersQueues<kHelps> queues, const DeviceSet& set, u32 op, u64 block, u64 blocks, Place place) {
  SetTarget<kHelps> target = {queues, set, place.buffer};
  Rest rest = {block, blocks, place.offset};
  return target.inside(rest) ? detail::block(target, op, rest) : static_cast<Status>(status::kArgument);
}

}  // namespace detail

// Reads `blocks` blocks of a set from `block` on to a place at a multiple of 4. Any length: it is split where a unit ends and
// where one command takes no more, and up to kPipeline commands, of the same SSD or of several, are under way side by side.
// Returns when the data is there, or with the first failure, after which any part of it may have been moved: what is under way
// then is waited for, as in read() of a namespace.
template <bool kHelps>
GPUNVME_FN Status read(CallersQueues<kHelps> queues, const DeviceSet& set, u64 block, u64 blocks, Place to) {
  return detail::block(queues, set, opcode::kRead, block, blocks, to);
}

// The other direction. The caller's stores to the place come before the commands.
template <bool kHelps>
GPUNVME_FN Status write(CallersQueues<kHelps> queues, const DeviceSet& set, u64 block, u64 blocks, Place from) {
  return detail::block(queues, set, opcode::kWrite, block, blocks, from);
}

// One command's worth of a read: blocks of one unit, at most set.max_blocks; kArgument for more. Fewer registers and less machine
// code than read(), like read_one() of a namespace.
template <bool kHelps>
GPUNVME_FN Status read_one(CallersQueues<kHelps> queues, const DeviceSet& set, u64 block, u64 blocks, Place to) {
  detail::SetTarget<kHelps> target = {queues, set, to.buffer};
  detail::Rest rest = {block, blocks, to.offset};
  Command c;
  Status s = target.inside(rest) && target.next(rest) == blocks
                 ? target.describe(opcode::kRead, rest, static_cast<u32>(blocks), c)
                 : static_cast<Status>(status::kArgument);
  return failed(s) ? s : target.queue(rest).execute(c);
}

// A range of any length read by a whole warp, whose lanes have its commands under way side by side, on all of the SSDs. All lanes
// call, with the same arguments. All get the same status, a failure of any of them if there is one, and all see the data. A
// command takes at most 1 << set.step_shift blocks.
template <bool kHelps>
GPUNVME_FN Status read_warp(CallersQueues<kHelps> queues, const DeviceSet& set, u64 block, u64 blocks, Place to) {
  detail::SetTarget<kHelps> target = {queues, set, to.buffer};
  return detail::all_of_warp(detail::part(target, {block, blocks, to.offset}, warp::lane(), warp::kWidth));
}

// The same by all threads of a block of whole warps, at most 32.
template <bool kHelps>
GPUNVME_FN Status read_block(CallersQueues<kHelps> queues, const DeviceSet& set, u64 block, u64 blocks, Place to) {
  detail::SetTarget<kHelps> target = {queues, set, to.buffer};
  return detail::all_of_block(
      detail::part(target, {block, blocks, to.offset}, detail::number_in_block(), detail::threads_of_block()));
}

// Makes written blocks durable, on each member up to the first that fails.
template <bool kHelps>
GPUNVME_FN Status flush(CallersQueues<kHelps> queues, const DeviceSet& set) {
  GPUNVME_ROLLED
  for (u32 i = 0; i < set.member_count; i++) {
    const Namespace& ns = queues.storage.namespaces[set.members[i].ssd];
    Status s = flush(ns, queues.of(ns));
    if (failed(s)) {
      return s;
    }
  }
  return status::kSuccess;
}

}  // namespace gpunvme
