#pragma once
// Warps that serve queue pairs for callers that use ServedQueue, and do nothing else. The callers' code needs fewer registers
// than code that helps to serve, and a lone caller's command is announced and completed as soon as a warp looks.
//
//   extern "C" __global__ void __launch_bounds__(256, 1) work(const Storage* storage, u32* callers) {  // 256 * (blocks - 1)
//     const Namespace& ns = storage->namespaces[0];
//     if (blockIdx.x == 0) {
//       serve(*storage, ns, block::index(), block::warps(), callers);
//       return;
//     }
//     ...  read_one(ns, storage->served_queue(ns, number), ...)
//     leave(callers);
//   }
//
// The warps that serve must run while others wait: all blocks of the kernel fit on the GPU at once, or the first block serves
// and the GPU begins with it, or each block has a warp that serves. The warps that go by one count of callers serve together
// all queues that these callers use. Beyond that it does not matter who serves what: a queue that another warp is just serving
// is left to it, and callers of a SharedQueue, who are not counted, may help.
#include "io.cuh"

namespace gpunvme {

// Serves the queue pairs `first`, first + step, ... of a namespace, below queue_count (step > 0), until `*callers` is 0 or the
// host says stop. `callers` counts those that have not left, in the GPU's or the block's memory; the host or the kernel sets it
// before. Called by whole warps.
GPUNVME_FN void serve(const Storage& storage, const Namespace& ns, u32 first, u32 step, const u32* callers) {
  if (first >= ns.queue_count || step == 0 || !ns.queues[first].shared()) {
    return;
  }
  const Queue& any = ns.queues[first];
  const bool only = ns.queue_count - first <= step;
  bool last = false;
  GPUNVME_ROLLED
  for (u32 idle = 0; !last;) {
    bool over = warp::lane() == 0 && mem::load(callers) == 0;
    u32 said = warp::lane() == 0 ? any.told(storage.stop) : 0;
    if (warp::ballot(warp::kFull, (said & told::kStop) != 0) != 0) {
      return;
    }
    if ((said & told::kRecover) != 0) {
      detail::Recoverer::step(any.recovery, storage.stop);
    }
    warp::sync(warp::kFull);
    // One more turn behind the last caller, so that what it has submitted and not waited for is announced.
    last = warp::ballot(warp::kFull, over) != 0;
    // Acquire: the callers' marks, of whoever saw that they have left.
    mem::fence_gpu();
    warp::sync(warp::kFull);
    bool moved = false;
    GPUNVME_ROLLED
    for (u32 i = first; i < ns.queue_count; i += step) {
      moved = Service::turn(ns.queues + i, warp::kFull, last, only) || moved;
    }
    idle = moved ? 0 : idle + 1;
    if (!moved && !last) {
      pause(idle < 16 ? 40 : 400);
    }
  }
}

// A caller has left: its threads wait for nothing any more. One thread says so for as many as `callers` counts it for.
GPUNVME_FN void leave(u32* callers, u32 count = 1) {
  // Release: its marks.
  mem::fence_gpu();
  mem::fetch_add(callers, 0 - count);
}

}  // namespace gpunvme
