// Whether what an SSD writes into the GPU's memory is there once its completion is: reads the same blocks again and again, one
// command in flight in each queue, and looks at the end of the data right after each completion.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

// What a queue's thread is given, and what it saw; layout in DataArrival.java.
struct alignas(16) Arrival {
  Quad end;         // the last 16 bytes of the blocks, as they are on the SSD
  u64 reads;
  u64 late;         // of them, those whose end was not there, or not all of it
  u64 longest_ns;   // that one took from its completion on
  Status status;    // of the first read that failed, which is the last one
  u32 missing;      // not 0: the last read's end was not there for so long that it will not come
};

namespace {

// How long an end is waited for.
constexpr u64 kPatienceNs = 1000000000;

// Reads that may be repeated, because the SSD says so.
constexpr u32 kRetries = 16;

// Rounds between two looks at the clock and the stop word.
constexpr u32 kClockMask = 255;

__device__ bool same(const Quad& a, const Quad& b) { return a.x == b.x && a.y == b.y && a.z == b.z && a.w == b.w; }

// The completion of the one command in flight. The library's own queues look at it later, when they have booked it: here the
// loads of the data are to follow that of the completion at once.
__device__ Status complete(Queue* q, const u32* stop) {
  const Pair* entry = reinterpret_cast<const Pair*>(&q->cq[q->cq_head & q->cq_mask()].dw2);
  u32 phase = ~(q->cq_head >> q->cq_bits) & 1;
  u64 begin = nanos();
  for (u32 round = 0;; round++) {
    Pair cqe = mem::load_system_acquire(entry);
    if (cqe_phase(cqe.y) == phase) {
      return cqe_status(cqe.y);
    }
    if ((round & kClockMask) == kClockMask) {
      if (q->told_to_stop(stop)) {
        return status::kStopped;
      }
      if (nanos() - begin > q->timeout_ns) {
        return status::kTimeout;
      }
      give_way();
    }
  }
}

// Waits for an end that was not there; how long that took, or 0 if it does not come.
__device__ u64 arrives(const Quad* at, const Quad& end, u64 completed) {
  for (;;) {
    bool there = same(mem::load_system(at), end);
    u64 waited = nanos() - completed;
    if (there) {
      return waited > 0 ? waited : 1;
    }
    if (waited > kPatienceNs) {
      return 0;
    }
    give_way();
  }
}

}  // namespace

// One thread of each block drives the queue of the block's number, by hand: nothing else may use these queues. Reads `blocks`
// blocks from LBA 0 on into that queue's part of buffer 0, for so long.
extern "C" __global__ void gpunvme_arrival(const Storage* storage, Arrival* arrivals, u32 blocks, u64 time_ns) {
  const Namespace& ns = storage->namespaces[0];
  Queue* q = ns.queues + blockIdx.x;
  Arrival& a = arrivals[blockIdx.x];
  const Buffer& buffer = storage->buffer(0, 0);
  u64 bytes = static_cast<u64>(blocks) << ns.block_shift;
  Command command;
  a.status = ns.describe(opcode::kRead, 0, blocks, buffer, blockIdx.x * bytes, command);
  if (failed(a.status)) {
    return;
  }
  Quad end = a.end;
  Quad mark = {~end.x, ~end.y, ~end.z, ~end.w};
  Quad* at = reinterpret_cast<Quad*>(static_cast<char*>(buffer.memory) + (blockIdx.x + 1) * bytes) - 1;
  u32 cid = slot::cid(q->slots[0]);
  u32 retries = 0;
  u64 begin = nanos();
  do {
    mem::store_system(at, mark);
    cid = q->next_cid(cid);
    detail::write_sqe(q, q->sq_tail++, command, cid);
    // Mark and entry before the doorbell, and the look at the completion before its entry is given back.
    mem::fence_system();
    if (q->cq_rung != q->cq_head) {
      q->cq_rung = q->cq_head;
      q->store_doorbell(q->cq_doorbell, q->cq_head & q->cq_mask());
    }
    q->store_doorbell(q->sq_doorbell, q->sq_tail & q->sq_mask());
    Status s = complete(q, storage->stop);
    Quad seen = mem::load_system(at);
    u64 completed = nanos();
    if (failed(s) && (!may_retry(s) || ++retries > kRetries)) {
      a.status = s;
      break;
    }
    q->cq_head++;
    if (failed(s)) {
      continue;
    }
    a.reads++;
    if (!same(seen, end)) {
      a.late++;
      u64 waited = arrives(at, end, completed);
      if (waited == 0) {
        a.missing = 1;
        break;
      }
      a.longest_ns = waited > a.longest_ns ? waited : a.longest_ns;
    }
  } while (nanos() - begin < time_ns);
  q->slots[0] = slot::kFree | cid;
}
