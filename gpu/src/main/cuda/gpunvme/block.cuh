#pragma once
// A queue pair that one block owns: several warps write, look and hand over side by side. All threads of the block call.
#include "owned.cuh"

namespace gpunvme {
namespace detail {

// What a block's warps tell each other: memory of the block.
struct BlockWords {
  // The number of the first entry that has not arrived, in three looks in turn: one is in use, one may still be read, and one
  // is made ready for the next.
  u32 missing[3];
  u32 free_tail;
  u32 quarantined;
  u32 mine[block::kMostWarps];
  u64 value;
};

// A block as the owner of a queue.
class BlockOwner {
 public:
  static constexpr u32 kWindows = 4;
  static constexpr bool kOneWarp = false;

  GPUNVME_FN BlockOwner(const Queue* q, BlockWords& words)
      : free_tail(q->free_tail), quarantined(q->quarantined), shared(&words) {
    block::sync();
    if (thread() == 0) {
      for (u32& m : shared->missing) {
        m = kNone;
      }
      shared->free_tail = free_tail;
      shared->quarantined = quarantined;
    }
    block::sync();
  }

  GPUNVME_FN u32 thread() const { return number; }
  GPUNVME_FN u32 first() const { return number - warp::lane(); }
  GPUNVME_FN u32 threads() const { return width; }
  GPUNVME_FN static void sync() { block::sync(); }

  template <class T>
  GPUNVME_FN T of_first(T value) const {
    block::sync();  // nobody reads the last one any more
    if (thread() == 0) {
      shared->value = value;
    }
    block::sync();
    return static_cast<T>(shared->value);
  }

  GPUNVME_FN Share share(bool got, u32 wanted) const {
    u32 mine = warp::popcount(warp::ballot(warp::kFull, got));
    u32 total = block::count(got);
    if (total == wanted) {
      return {total, first(), mine};  // the wanting threads are the lowest
    }
    if (warp::lane() == 0) {
      shared->mine[first() / warp::kWidth] = mine;
    }
    block::sync();
    u32 before = 0;
    for (u32 w = 0; w < first() / warp::kWidth; w++) {
      before += shared->mine[w];
    }
    return {total, before, mine};
  }

  GPUNVME_FN u32 arrived(u32 (&run)[kWindows], u32 windows) {
    u32 none = kNone;
    for (u32 i = kWindows; i-- != 0;) {
      none = i < windows && run[i] != warp::kWidth ? i * width + first() + run[i] : none;
    }
    u32* missing = shared->missing + look;
    if (warp::lane() == 0 && none != kNone) {
      block::lower(missing, none);
    }
    block::sync();
    u32 total = *missing < windows * width ? *missing : windows * width;
    look = look == 2 ? 0 : look + 1;
    if (thread() == 0) {
      shared->missing[look == 2 ? 0 : look + 1] = kNone;
    }
    for (u32 i = 0; i < kWindows; i++) {
      u32 from = i * width + first();
      u32 mine = total > from ? total - from : 0;
      run[i] = mine < warp::kWidth ? mine : warp::kWidth;
    }
    return total;
  }

  GPUNVME_FN void settle() {
    block::sync();
    free_tail = shared->free_tail;
    quarantined = shared->quarantined;
  }

  GPUNVME_FN u32 give_back(u32 n) const {
    u32 at = 0;
    if (warp::lane() == 0 && n != 0) {
      at = block::fetch_add(&shared->free_tail, n);
    }
    return warp::shuffle(warp::kFull, at, 0);
  }

  GPUNVME_FN void quarantine(u32 n) const {
    if (warp::lane() == 0 && n != 0) {
      block::fetch_add(&shared->quarantined, n);
    }
  }

  u32 free_tail;
  u32 quarantined;

 private:
  static constexpr u32 kNone = ~0u;

  const u32 number = block::index() * warp::kWidth + warp::lane();
  const u32 width = block::warps() * warp::kWidth;
  BlockWords* const shared;
  u32 look = 0;
};

}  // namespace detail

// ExclusiveQueue for a block of several warps, at most 32: one doorbell store announces what all of them wrote. For a queue
// that is too fast for one warp. With several queues a warp for each does more than a block for each of fewer.
//
//   __shared__ BlockQueue::Shared shared;
//   BlockQueue q(queue, shared);      // all threads of the block, of whole warps
//   q.run(source, sink);              // until the source is dry and every command is over
//   q.close();                        // the next kernel goes on from here, as BlockQueue or as ExclusiveQueue
//
// The shared memory is the caller's, so that a kernel knows what it uses, may use it for something else before and after, and
// may drive one queue after another.
//
// Each thread has a source and a sink of its own (often copies of the same few pointers):
//
// source.take(bool wanted, Command& c) -> bool   is called by the whole block at the same time, the wanting threads being its
//     lowest; so it may use barriers. Those of a warp's threads that get a command must be its lowest; once a thread that
//     wanted one got none the source is dry, for all threads. Commands are submitted in the order of the threads.
// sink.done(bool valid, u32 user, u64 slba, Status status)   is called by whole warps, each when it likes: no barrier. A
//     command may end in another warp than the one that took it. It was taken before, as memory orders it.
//
// All else is as said of ExclusiveQueue.
class BlockQueue : public detail::OwnedQueue<detail::BlockOwner> {
 public:
  using Shared = detail::BlockWords;

  GPUNVME_FN BlockQueue(Queue* queue, Shared& shared) : OwnedQueue(queue, detail::BlockOwner(queue, shared)) {}
};

}  // namespace gpunvme
