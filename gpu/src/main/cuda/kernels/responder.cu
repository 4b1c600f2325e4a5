// The least a controller can do, for measuring an initiator whose queues lie in GPU memory: reads every SQE, checks and counts
// it, echoes its CID. One warp per queue pair; runs beside the kernel it serves.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

// Layout in BenchLayout.java.
struct alignas(16) ResponderArgs {
  Queue* queues;       // one per warp; only the fixed part is read
  u64* answered;       // commands answered, per queue
  u64* wrong;          // SQEs that failed the check, per queue
  u64* doorbells;      // changes of the doorbell seen, per queue
  const u32* stop;     // GPU memory; non-zero ends the kernel
  u64 end_ns;          // the kernel ends this long after its start at the latest
  u32 queue_count;
  u32 nsid;
  u64* sums;           // of the numbers of all commands, per queue; null: not wanted
};

extern "C" __global__ void __launch_bounds__(128) gpunvme_responder(ResponderArgs a) {
  u32 index = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
  if (index >= a.queue_count) {
    return;
  }
  const Queue& q = a.queues[index];
  u32 lane = warp::lane();
  u32 head = 0;
  u32 seen = 0;
  u32 idle = 0;
  u64 answered = 0;
  u64 wrong = 0;
  u64 doorbells = 0;
  u64 sum = 0;
  u64 begin = nanos();
  for (;;) {
    u32 tail = warp::shuffle(warp::kFull, mem::load_system(q.sq_doorbell), 0);
    u32 announced = (tail - head) & q.sq_mask();
    if (tail != seen) {
      seen = tail;
      doorbells++;
    }
    if (announced == 0) {
      if ((++idle & 255) == 0) {
        if (mem::load(a.stop) != 0 || nanos() - begin > a.end_ns) {
          break;
        }
        give_way();
      }
      continue;
    }
    idle = 0;
    // Acquire: the SQEs that the doorbell announces.
    mem::fence_system();
    while (announced != 0) {
      u32 n = announced < warp::kWidth ? announced : warp::kWidth;
      if (lane < n) {
        u32 position = head + lane;
        const Quad* sqe = reinterpret_cast<const Quad*>(q.sq + (position & q.sq_mask()));
        Quad a0 = sqe[0];
        Quad a1 = sqe[1];
        Quad a2 = sqe[2];
        Quad a3 = sqe[3];
        // What no_copy() of bench.cu makes: one block, the number as SLBA, its low bits as PRP1's page.
        bool good = a0.y == a.nsid && (a0.x & 0xFFFF) == opcode::kRead && a0.z == 0 && a0.w == 0 && a1.x == 0 &&
                    a1.y == 0 && a1.z == a2.z << 12 && a2.x == 0 && a2.y == 0 && a3.x == 0 && a3.y == 0 && a3.z == 0 &&
                    a3.w == 0;
        wrong += good ? 0 : 1;
        sum += a2.z;
        u32 slot = static_cast<u32>(answered) + lane;
        Quad cqe = {0, 0, (q.qid << 16) | ((position + 1) & q.sq_mask()),
                    (a0.x >> 16) | (~(slot >> q.cq_bits) & 1) << 16};
        mem::store_system(reinterpret_cast<Quad*>(q.cq + (slot & q.cq_mask())), cqe);
      }
      answered += n;
      head += n;
      announced -= n;
    }
  }
  wrong = warp::sum(static_cast<u32>(wrong));
  for (u32 distance = warp::kWidth / 2; distance != 0; distance /= 2) {
    sum += warp::shuffle(warp::kFull, sum, (lane + distance) % warp::kWidth);
  }
  if (lane == 0) {
    a.answered[index] = answered;
    a.wrong[index] = wrong;
    a.doorbells[index] = doorbells;
    if (a.sums != nullptr) {
      a.sums[index] = sum;
    }
  }
}
