// Carries out a transfer plan: GpuInitiator's kernel. One block of one warp per queue pair.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

// Filled in by GpuInitiator; layout in DeviceLayout.java.
struct alignas(16) TransferArgs {
  Queue* queues;         // one per block
  const Buffer* buffer;  // of all commands, unless there are targets
  const u64* slba;       // of each command
  const u64* offset;     // bytes in the buffer
  const u32* blocks;
  const u32* order;      // which commands, in which order; null: all of them
  Status* statuses;      // of commands that were taken; kPending until the command is over
  u32* started;          // low 32 bits of nanos() at submission, then ns until its completion was seen
  u32* cursor;           // counts the commands that are taken, and goes on from kernel to kernel
  u64* moved;            // logical blocks moved so far; GPU memory, which the host copies meanwhile
  u32 commands;
  u32 opcode;
  u32 nsid;
  u32 base;              // what *cursor was before the launch
  const u32* targets;    // which of the buffers each command uses; null: `buffer`
  const Buffer* const* buffers;
};

namespace {

class PlanSource {
 public:
  __device__ explicit PlanSource(const TransferArgs& args) : a(args) {}

  __device__ bool take(bool wanted, Command& c) {
    u32 mask = warp::ballot(warp::kFull, wanted);
    u32 first = 0;
    if (warp::lane() == 0) {
      first = mem::fetch_add(a.cursor, warp::popcount(mask)) - a.base;
    }
    first = warp::shuffle(warp::kFull, first, 0);
    u32 at = first + warp::rank(mask);
    if (!wanted || at >= a.commands) {
      return false;
    }
    u32 command = a.order == nullptr ? at : a.order[at];
    c = {a.opcode, a.nsid, a.slba[command], a.blocks[command], 0, 0, 0, command};
    u64 bytes = static_cast<u64>(c.blocks) << block_shift;
    const Buffer* buffer = a.targets == nullptr ? a.buffer : a.buffers[a.targets[command]];
    prp::entries(*buffer, a.offset[command], bytes, c.prp1, c.prp2);
    a.statuses[command] = status::kPending;
    a.started[command] = static_cast<u32>(nanos());
    return true;
  }

  u32 block_shift;

 private:
  const TransferArgs& a;
};

class PlanSink {
 public:
  __device__ explicit PlanSink(const TransferArgs& args) : a(args) {}

  __device__ void done(bool valid, u32 user, u64, Status s) {
    u32 blocks = 0;
    if (valid) {
      a.statuses[user] = s;
      a.started[user] = static_cast<u32>(nanos()) - a.started[user];
      blocks = failed(s) ? 0 : a.blocks[user];
    }
    u32 sum = warp::sum(blocks);
    if (sum != 0 && warp::lane() == 0) {
      mem::fetch_add(a.moved, static_cast<u64>(sum));
    }
  }

 private:
  const TransferArgs& a;
};

}  // namespace

extern "C" __global__ void __launch_bounds__(32) gpunvme_transfer(TransferArgs args, u32 block_shift) {
  PlanSource source(args);
  source.block_shift = block_shift;
  PlanSink sink(args);
  ExclusiveQueue queue(args.queues + blockIdx.x);
  queue.run(source, sink);
  queue.close();
}
