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

// The ticket of a shared queue: SQEs ever promised, in its low 32 bits.
namespace ticket {
constexpr u64 kClosed = 1ull << 63;  // nobody gets a ticket: the queue is being recovered
constexpr u32 kRefused = 1u << 31;   // of first(): there was none

// What a caller has drawn: the position of its first SQE, of which 31 bits are kept.
GPUNVME_FN u32 first(u64 word) {
  return (static_cast<u32>(word) & (kRefused - 1)) | (static_cast<u32>(word >> 32) & kRefused);
}
}  // namespace ticket

// What the stop word says.
namespace told {
constexpr u32 kStop = 1;     // end every wait
constexpr u32 kRecover = 2;  // the host wants something in a Recovery of these queues
}  // namespace told

struct Queue;

// Recovery of one SSD's shared queues while kernels drive them (recovery.cuh).
struct alignas(128) Recovery {
  // ---- written by the host
  u32 asked;        // number of the recovery that the host wants
  u32 made;         // number of the last one that it has made at the controller
  u32 queue_count;
  u32 reserved0;
  Queue* queues;    // queue_count of them
  u64 reserved1[13];

  // ---- written by kernels
  u32 state;        // number of the last one that is over, with a phase of namespace recovery below
  u32 reserved2[31];
};
static_assert(sizeof(Recovery) == 256, "layout shared with the host");

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
  const u32* stop;    // namespace told, for kernels without a word of their own. GPU memory; the host writes it, by a copy. Not host memory: warps that poll
                      // host memory make everybody's system fences ten to a hundred times slower (docs/device-library.md)
  Recovery* recovery;  // shared; null: never while a kernel runs
  u32 recovered;       // number of the last recovery in which the host made this queue pair anew at the controller
  u32 reserved0;

  // ---- producer: positions count from 0 and wrap at 2^32; the ring index is the low sq_bits
  u32 sq_tail;     // exclusive: SQEs written; shared, with sq_rung one 64-bit word: namespace ticket
  u32 sq_rung;     // exclusive: SQEs announced by the doorbell
  u32 free_head;   // exclusive: free CIDs taken
  u32 free_tail;   // exclusive: free CIDs given back
  u32 reserved1[28];

  // ---- consumer
  u32 service;     // shared: namespace service and, above, SQEs announced; with cq_head one 64-bit word
  u32 cq_head;     // CQEs consumed
  u32 cq_rung;     // CQEs given back to the controller by the doorbell
  u32 quarantined;
  u32 first_look;  // shared: ns from a doorbell to the first look at its completion, as lone lanes have learned
  u32 reserved2[27];

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
  u64 recovered_slots;  // quarantined ones that came back by a recovery while a kernel ran
  u64 reserved3[5];

  GPUNVME_FN u64* service_word() { return reinterpret_cast<u64*>(&service); }
  GPUNVME_FN u64* ticket_word() { return reinterpret_cast<u64*>(&sq_tail); }
  GPUNVME_FN u32 sq_mask() const { return (1u << sq_bits) - 1; }
  GPUNVME_FN u32 cq_mask() const { return (1u << cq_bits) - 1; }
  GPUNVME_FN u32 slot_mask() const { return (1u << slot_bits) - 1; }
  GPUNVME_FN bool shared() const { return (flags & queue_flags::kShared) != 0; }
  // `own`: the word of a kernel that has one, or null.
  GPUNVME_FN u32 told(const u32* own = nullptr) const { return mem::load_system(own != nullptr ? own : stop); }
  GPUNVME_FN bool told_to_stop(const u32* own = nullptr) const { return (told(own) & told::kStop) != 0; }

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
    GPUNVME_UNROLLED(kTurns)
    for (u32 group = 0; group < count; group += 8) {
      u32 from = group + (lane >> 2);
      // One word after the other: few are alive at a time.
      Quad v;
      u32 word = warp::shuffle(warp::kFull, c.opcode | cid << 16, from);
      v.x = quad == 0 ? word : 0;
      word = warp::shuffle(warp::kFull, c.nsid, from);
      v.y = quad == 0 ? word : 0;
      word = warp::shuffle(warp::kFull, static_cast<u32>(c.prp1), from);
      v.z = quad == 1 ? word : 0;
      word = warp::shuffle(warp::kFull, static_cast<u32>(c.prp1 >> 32), from);
      v.w = quad == 1 ? word : 0;
      word = warp::shuffle(warp::kFull, static_cast<u32>(c.prp2), from);
      v.x = quad == 2 ? word : v.x;
      word = warp::shuffle(warp::kFull, static_cast<u32>(c.prp2 >> 32), from);
      v.y = quad == 2 ? word : v.y;
      word = warp::shuffle(warp::kFull, static_cast<u32>(c.slba), from);
      v.z = quad == 2 ? word : v.z;
      word = warp::shuffle(warp::kFull, static_cast<u32>(c.slba >> 32), from);
      v.w = quad == 2 ? word : v.w;
      word = warp::shuffle(warp::kFull, c.blocks == 0 ? 0 : (c.blocks - 1) | c.flags, from);
      v.x = quad == 3 ? word : v.x;
      if (from < count) {
        mem::store_system(reinterpret_cast<Quad*>(sq + ((first + from) & sq_mask)) + quad, v);
      }
    }
  }
}

// When to look for the first completion after a doorbell. A look at host memory takes over a microsecond, and one that
// comes too early delays the next: so the first waits a little, learning from whether it was too early.
class FirstLook {
 public:
  GPUNVME_FN explicit FirstLook(u32 learned = 0) : delay(learned) {}

  // A doorbell was stored; `few`: and little else is in flight.
  GPUNVME_FN void start(bool few) {
    due = few ? static_cast<u32>(nanos()) + delay : 0;
    waiting = few;
  }

  GPUNVME_FN void wait() const {
    // Left over more than kMost: the moment has passed.
    while (waiting && due - static_cast<u32>(nanos()) - 1 < kMost) {
    }
  }

  // The first look found something or did not.
  GPUNVME_FN void learn(bool found) {
    if (waiting) {
      u32 next = found ? delay - kEarlier : delay + kLater;
      delay = found && delay < kEarlier ? 0 : next > kMost ? kMost : next;
      waiting = false;
    }
  }

  // What was learned, for the next one.
  GPUNVME_FN u32 learned() const { return delay; }

 private:
  static constexpr u32 kEarlier = 8;
  static constexpr u32 kLater = 128;
  static constexpr u32 kMost = 4000;  // slower controllers: a microsecond does not matter
  u32 delay;
  u32 due = 0;
  bool waiting = false;
};

// Coarse time for SlotInfo: 2^20 ns units, 24 bits.
GPUNVME_FN u32 coarse(u64 nanos) { return static_cast<u32>(nanos >> 20) & 0xFFFFFF; }

}  // namespace detail
}  // namespace gpunvme
