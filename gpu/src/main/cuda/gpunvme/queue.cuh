#pragma once
// A queue pair as plain memory of the GPU: laid out and filled in by the host (DeviceLayout.java, DeviceQueue.java), then driven by one
// kernel at a time, either as an ExclusiveQueue or as a SharedQueue.
//
// Slots: a command occupies one of `depth` slots from submission until its completion was seen. Its CID is the slot's
// number with a generation above it, so that late and doubled completions are recognised. The rings are longer than the
// number of slots (SQ > depth, CQ >= 2 * depth entries, powers of two), hence neither can overflow and SQHD need not be
// tracked.
#include "spec.cuh"
#include "status.cuh"

namespace gpunvme {

// What a slot holds, with the CID of its last command in the low half: state (or, once the command is done, its status) in
// the high half.
namespace slot {
constexpr u32 kInFlight = 0x8000u << 16;
constexpr u32 kQuarantined = 0x8001u << 16;
constexpr u32 kFree = 0x8002u << 16;

GPUNVME_FN u32 cid(u32 word) { return word & 0xFFFF; }
GPUNVME_FN u32 state(u32 word) { return word & 0xFFFF0000u; }
GPUNVME_FN bool done(u32 word) { return word < kInFlight; }
GPUNVME_FN Status status(u32 word) { return word >> 16; }
GPUNVME_FN u32 done_word(u32 cid, Status s) { return s << 16 | cid; }
}  // namespace slot

// What a slot's last command was, for reports.
struct alignas(16) SlotInfo {
  u64 slba;
  u32 user;
  u32 opcode_and_time;  // opcode 7:0; submission time in units of 2^20 ns 31:8

  GPUNVME_FN u32 opcode() const { return opcode_and_time & 0xFF; }
};

// The service word of a shared queue: who serves it, and how far it is served, in one 64-bit word, so that taking it
// tells everything and leaving it says everything.
namespace service {
constexpr u64 kLocked = 1;
constexpr u64 kPending = 2;  // somebody counts on being announced by the holder
constexpr u64 kWide = 4;     // the last holder found many completions
constexpr u32 kPositions = (1u << 29) - 1;

GPUNVME_FN u64 word(u32 rung, u32 head, bool wide) {
  return static_cast<u64>(head) << 32 | static_cast<u64>(rung & kPositions) << 3 | (wide ? kWide : 0);
}
GPUNVME_FN u32 rung(u64 word) { return static_cast<u32>(word) >> 3; }
GPUNVME_FN u32 head(u64 word) { return static_cast<u32>(word >> 32); }

// Whether two positions are the same one, as far as the service word knows them.
GPUNVME_FN bool same(u32 a, u32 b) { return ((a - b) & kPositions) == 0; }

// What `marks` holds once the SQE at this position is written.
GPUNVME_FN u32 mark(u32 position) { return (position & kPositions) + 1; }
}  // namespace service

namespace queue_flags {
constexpr u32 kDoorbellsInMemory = 1;  // the controller is software: doorbells are ordinary memory
constexpr u32 kShared = 2;             // laid out for SharedQueue, else for ExclusiveQueue
constexpr u32 kRingsInGpuMemory = 4;   // placement VRAM
}  // namespace queue_flags

struct alignas(128) Queue {
  // ---- fixed: written by the host before the first kernel
  u32 qid;
  u32 depth;       // slots, 1..4096; shared queues: a multiple of 32
  u32 sq_bits;     // log2 of the submission queue's entries
  u32 cq_bits;     // log2 of the completion queue's entries
  u32 slot_bits;   // bits of the slot number in a CID
  u32 flags;       // queue_flags
  u64 timeout_ns;  // a command older than this has expired
  Sqe* sq;
  Cqe* cq;
  u32* sq_doorbell;
  u32* cq_doorbell;
  u32* slots;         // depth words, namespace slot
  SlotInfo* infos;    // depth
  u32* free_slots;    // exclusive: ring of free CIDs, 2^slot_bits entries; shared: bit set of free slots
  u32* marks;         // shared: 2^sq_bits words, 1 + position (29 bits) of the SQE last written there
  ErrorLog* errors;
  const u32* stop;    // for kernels without a word of their own. GPU memory; the host makes it non-zero, by a copy, to end every wait. Not host memory: warps that poll
                      // host memory make everybody's system fences ten to a hundred times slower (docs/device-library.md)
  u64 reserved0[2];

  // ---- producer: positions count from 0 and wrap at 2^32; the ring index is the low sq_bits
  u32 sq_tail;     // exclusive: SQEs written; shared: SQEs ever promised (tickets)
  u32 sq_rung;     // SQEs announced by the doorbell
  u32 free_head;   // exclusive: free CIDs taken
  u32 free_tail;   // exclusive: free CIDs given back
  u32 reserved1[28];

  // ---- consumer
  u32 service;     // shared: namespace service and, above, SQEs announced; with cq_head one 64-bit word
  u32 cq_head;     // CQEs consumed
  u32 cq_rung;     // CQEs given back to the controller by the doorbell
  u32 quarantined;
  u32 reserved2[28];

  // ---- counters
  u64 submitted;
  u64 completed;
  u64 sq_doorbells;
  u64 cq_doorbells;
  u64 failures;    // completions with a status other than success
  u64 timeouts;
  u64 late;
  u64 stale;
  u64 unknown;
  u64 malformed;
  u64 reserved3[6];

  GPUNVME_FN u64* service_word() { return reinterpret_cast<u64*>(&service); }
  GPUNVME_FN u32 sq_mask() const { return (1u << sq_bits) - 1; }
  GPUNVME_FN u32 cq_mask() const { return (1u << cq_bits) - 1; }
  GPUNVME_FN u32 slot_mask() const { return (1u << slot_bits) - 1; }
  GPUNVME_FN bool shared() const { return (flags & queue_flags::kShared) != 0; }
  // `own`: the word of a kernel that has one, or null.
  GPUNVME_FN bool told_to_stop(const u32* own = nullptr) const {
    return mem::load_system(own != nullptr ? own : stop) != 0;
  }

  // The same slot's next generation. FFFFh means "no command" in error log entries, so it is left out.
  GPUNVME_FN u32 next_cid(u32 cid) const {
    u32 step = 1u << slot_bits;
    u32 next = (cid + step) & 0xFFFF;
    return next == 0xFFFF ? (next + step) & 0xFFFF : next;
  }

  GPUNVME_FN void store_doorbell(u32* doorbell, u32 value) const {
    if (flags & queue_flags::kDoorbellsInMemory) {
      mem::store_system(doorbell, value);
    } else {
      mem::store_mmio(doorbell, value);
    }
  }

  // `info` is the slot's as long as the slot is the command's; later another command may be writing there.
  GPUNVME_FN void report(u32 kind, Status s, u32 cid, const SlotInfo& info) const {
    errors->add({kind, s, qid, cid, info.slba, info.opcode(), info.user});
  }

  GPUNVME_FN void report(u32 kind, Status s, u32 cid) const { report(kind, s, cid, SlotInfo{0, 0, 0}); }

  // An entry with the right phase and another queue's SQID, half written or meant for another queue: it heals, or the command
  // expires. Counted at each look, reported once.
  GPUNVME_FN void note_malformed(u32 dw3) {
    if (mem::fetch_add(&malformed, 1ull) == 0) {
      report(trouble::kMalformed, cqe_status(dw3), cqe_cid(dw3));
    }
  }
};

// tests compare the layout with DeviceLayout.java
static_assert(sizeof(Queue) == 512, "four lines");

// One command as callers describe it.
struct Command {
  u32 opcode;
  u32 nsid;
  u64 slba;
  u32 blocks;  // 1..65536; 0 for Flush
  u32 flags;   // bits of CDW12 beside the block count (FUA, ...)
  u64 prp1;
  u64 prp2;
  u32 user;    // handed back at completion by exclusive queues
};

namespace detail {

// The four quads of an SQE.
GPUNVME_FN Quad sqe_quad(const Command& c, u32 cid, u32 index) {
  switch (index) {
    case 0:
      return {c.opcode | cid << 16, c.nsid, 0, 0};
    case 1:
      return {0, 0, static_cast<u32>(c.prp1), static_cast<u32>(c.prp1 >> 32)};
    case 2:
      return {static_cast<u32>(c.prp2), static_cast<u32>(c.prp2 >> 32), static_cast<u32>(c.slba),
              static_cast<u32>(c.slba >> 32)};
    default:
      return {c.blocks == 0 ? 0 : (c.blocks - 1) | c.flags, 0, 0, 0};
  }
}

// Writes one SQE by one lane.
GPUNVME_FN void write_sqe(Queue* q, u32 position, const Command& c, u32 cid) {
  Quad* entry = reinterpret_cast<Quad*>(q->sq + (position & q->sq_mask()));
  for (u32 i = 0; i < 4; i++) {
    mem::store_system(entry + i, sqe_quad(c, cid, i));
  }
}

// Writes the SQEs of `count` lanes, 1..warp::kWidth, to consecutive positions. The whole warp calls; lane i's command goes to
// position first + i for i < count. Towards the host four neighbouring lanes write one entry, so that the stores leave as
// whole lines (200 against 800 M entries/s on an H200); the GPU's own L2 does not mind. kTurns of a loop of four, of eight
// entries each, follow each other in the code.
template <u32 kTurns>
GPUNVME_FN void write_sqes(Queue* q, Sqe* sq, u32 sq_mask, u32 first, u32 count, const Command& c, u32 cid) {
  if (warp::kWidth == 1 || (q->flags & queue_flags::kRingsInGpuMemory) != 0) {
    if (warp::lane() < count) {
      write_sqe(q, first + warp::lane(), c, cid);
    }
  } else {
    u32 lane = warp::lane();
    u32 quad = lane & 3;
    u32 head = c.opcode | cid << 16;
    u32 nlb = c.blocks == 0 ? 0 : (c.blocks - 1) | c.flags;
    GPUNVME_UNROLLED(kTurns)
    for (u32 group = 0; group < count; group += 8) {
      u32 from = group + (lane >> 2);
      u32 a0 = warp::shuffle(warp::kFull, head, from);
      u32 a1 = warp::shuffle(warp::kFull, c.nsid, from);
      u64 p1 = warp::shuffle(warp::kFull, c.prp1, from);
      u64 p2 = warp::shuffle(warp::kFull, c.prp2, from);
      u64 lba = warp::shuffle(warp::kFull, c.slba, from);
      u32 a3 = warp::shuffle(warp::kFull, nlb, from);
      Quad v = {0, 0, 0, 0};
      if (quad == 0) {
        v.x = a0;
        v.y = a1;
      } else if (quad == 1) {
        v.z = static_cast<u32>(p1);
        v.w = static_cast<u32>(p1 >> 32);
      } else if (quad == 2) {
        v = {static_cast<u32>(p2), static_cast<u32>(p2 >> 32), static_cast<u32>(lba), static_cast<u32>(lba >> 32)};
      } else {
        v.x = a3;
      }
      if (from < count) {
        mem::store_system(reinterpret_cast<Quad*>(sq + ((first + from) & sq_mask)) + quad, v);
      }
    }
  }
}

// Coarse time for SlotInfo: 2^20 ns units, 24 bits.
GPUNVME_FN u32 coarse(u64 nanos) { return static_cast<u32>(nanos >> 20) & 0xFFFFFF; }

}  // namespace detail
}  // namespace gpunvme
