// Carries out a transfer plan: GpuInitiator's kernel. One block of one warp per queue pair.
//
// A short plan has one warp, which needs nobody's cursor, and the host wants to know of its end without copying anything: it
// leaves the statuses, the latencies and at last its queue in pinned memory.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

// A command's opcode is above its blocks, in one word (TransferPlan.java): plans may read and write.
constexpr u32 kOpcodeShift = 24;
constexpr u32 kBlocksMask = (1u << kOpcodeShift) - 1;

// Filled in by GpuInitiator; layout in DeviceLayout.java.
struct alignas(16) TransferArgs {
  Queue* queues;         // one per block
  const Buffer* buffer;  // of all commands, unless there are targets
  const u64* slba;       // of each command
  const u64* offset;     // bytes in the buffer
  const u32* blocks;     // and opcodes
  const u32* order;      // which commands, in which order; null: all of them
  Status* statuses;      // of commands that were taken; kPending until the command is over
  u32* started;          // low 32 bits of nanos() at submission; GPU memory
  u32* cursor;           // counts the commands that are taken, and goes on from kernel to kernel; null: this warp is alone
  u64* moved;            // logical blocks moved so far; GPU memory, which the host copies meanwhile; null: nobody asks
  u32 commands;
  u32 nsid;
  u32 base;              // what *cursor was before the launch
  const u32* targets;    // which of the buffers each command uses; null: `buffer`
  const Buffer* const* buffers;
  u32* latencies;        // ns from submission until the completion was seen; may be `started`
  Queue* ended;          // pinned memory: where a warp that is alone leaves its queue, qid last; null: nowhere
};

namespace {

class PlanSource {
 public:
  __device__ explicit PlanSource(const TransferArgs& args) : a(args) {}

  __device__ bool take(bool wanted, Command& c) {
    u32 mask = warp::ballot(warp::kFull, wanted);
    u32 at = claim(warp::popcount(mask)) + warp::rank(mask);
    if (!wanted || at >= a.commands) {
      return false;
    }
    u32 command = a.order == nullptr ? at : a.order[at];
    u32 word = a.blocks[command];
    c = {word >> kOpcodeShift, a.nsid, a.slba[command], word & kBlocksMask, 0, 0, 0, command};
    u64 bytes = static_cast<u64>(c.blocks) << block_shift;
    const Buffer* buffer = a.targets == nullptr ? a.buffer : a.buffers[a.targets[command]];
    prp::entries(*buffer, a.offset[command], bytes, c.prp1, c.prp2);
    a.statuses[command] = status::kPending;
    a.started[command] = static_cast<u32>(nanos());
    return true;
  }

  u32 block_shift;

 private:
  // The first of the next n commands.
  __device__ u32 claim(u32 n) {
    u32 first = 0;
    if (a.cursor == nullptr) {
      first = taken;
      taken += n;
      return first;
    }
    if (warp::lane() == 0) {
      first = mem::fetch_add(a.cursor, n) - a.base;
    }
    return warp::shuffle(warp::kFull, first, 0);
  }

  const TransferArgs& a;
  u32 taken = 0;  // by a warp that is alone
};

class PlanSink {
 public:
  __device__ explicit PlanSink(const TransferArgs& args) : a(args) {}

  __device__ void done(bool valid, u32 user, u64, Status s) {
    u32 blocks = 0;
    if (valid) {
      a.statuses[user] = s;
      a.latencies[user] = static_cast<u32>(nanos()) - a.started[user];
      blocks = failed(s) || a.moved == nullptr ? 0 : a.blocks[user] & kBlocksMask;
    }
    u32 sum = warp::sum(blocks);
    if (sum != 0 && warp::lane() == 0) {
      mem::fetch_add(a.moved, static_cast<u64>(sum));
    }
  }

 private:
  const TransferArgs& a;
};

// Leaves the queue where the host reads it without a copy. Its number is stored last: who sees that sees everything.
__device__ void leave(const Queue* queue, Queue* ended) {
  constexpr u32 kWords = sizeof(Queue) / sizeof(u64);
  const u64* from = reinterpret_cast<const u64*>(queue);
  u64* to = reinterpret_cast<u64*>(ended);
  // Without the first word, which has the number. Not by the L1 cache, which knows nothing of the atomics.
  for (u32 i = 1 + warp::lane(); i < kWords; i += warp::kWidth) {
    to[i] = mem::load(from + i);
  }
  warp::sync(warp::kFull);
  mem::fence_system();
  if (warp::lane() == 0) {
    mem::store_system(&ended->qid, queue->qid);
  }
}

}  // namespace

extern "C" __global__ void __launch_bounds__(32) gpunvme_transfer(TransferArgs args, u32 block_shift) {
  PlanSource source(args);
  source.block_shift = block_shift;
  PlanSink sink(args);
  ExclusiveQueue queue(args.queues + blockIdx.x);
  // Not all to whoever is first: controllers that are software have a thread for each queue.
  queue.run(source, sink, gridDim.x == 1 ? ~0u : (args.commands + gridDim.x - 1) / gridDim.x);
  queue.close();
  if (args.ended != nullptr) {
    leave(args.queues, args.ended);
  }
}
