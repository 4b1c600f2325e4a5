#pragma once
// A queue pair that one warp owns: the fastest way to run a known list of commands. Whole warps call; every lane of the
// warp takes part.
#include "owned.cuh"

namespace gpunvme {
namespace detail {

// A warp as the owner of a queue.
struct WarpOwner {
  static constexpr u32 kWindows = 4;
  static constexpr bool kOneWarp = true;

  GPUNVME_FN explicit WarpOwner(const Queue* q) : free_tail(q->free_tail), quarantined(q->quarantined) {}

  GPUNVME_FN u32 thread() const { return lane; }
  GPUNVME_FN static u32 first() { return 0; }
  GPUNVME_FN static u32 threads() { return warp::kWidth; }
  GPUNVME_FN static void sync() { warp::sync(warp::kFull); }

  template <class T>
  GPUNVME_FN static T of_first(T value) {
    return warp::shuffle(warp::kFull, value, 0);
  }

  GPUNVME_FN static Share share(bool got, u32) {
    u32 count = warp::popcount(warp::ballot(warp::kFull, got));
    return {count, 0, count};
  }

  GPUNVME_FN static u32 arrived(u32 (&run)[kWindows], u32) {
    u32 sum = 0;
    for (u32 i = 0; i < kWindows; i++) {
      sum += run[i];
    }
    return sum;
  }

  GPUNVME_FN static void settle() {}

  GPUNVME_FN u32 give_back(u32 n) {
    u32 at = free_tail;
    free_tail += n;
    return at;
  }

  GPUNVME_FN void quarantine(u32 n) { quarantined += n; }

  const u32 lane = warp::lane();
  u32 free_tail;
  u32 quarantined;
};

}  // namespace detail

// Drives one queue pair by one warp, as Lane.java and QueuePair.java do it by one thread.
//
//   ExclusiveQueue q(queue);          // the whole warp
//   q.run(source, sink);              // until the source is dry and every command is over
//   q.close();                        // the next kernel goes on from here
//
// source.take(bool wanted, Command& c) -> bool   is called by the whole warp, the wanting lanes being the lowest; gives
//     each wanting lane a command or false. Once it has given false it is dry. c.user names the command for the sink.
// sink.done(bool valid, u32 user, u64 slba, Status status)   is called by the whole warp; `valid` lanes each have
//     one command that is over.
//
// run(source, sink, n), n > 0 and the same in all threads, takes n commands at most before each doorbell: owners of several queues who share a source share what is
// in it, also if it is less than one of them could take at once.
//
// run() also ends, with the source not dry, when the host says stop, when every slot is quarantined, and at once if the queue
// is laid out for SharedQueue. What the source has not been asked for was not submitted.
//
// Pipelined: completions are taken while later commands are in flight, and the load that looks for completions
// travels while SQEs are written. One doorbell store announces everything written since the last. A command past
// the queue's timeout is quarantined: its slot stays taken until the completion arrives after all or the host has recovered
// the queue, and the sink is told kTimeout.
class ExclusiveQueue : public detail::OwnedQueue<detail::WarpOwner> {
 public:
  GPUNVME_FN explicit ExclusiveQueue(Queue* queue) : OwnedQueue(queue, detail::WarpOwner(queue)) {}
};

}  // namespace gpunvme
