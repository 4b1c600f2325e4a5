#pragma once
// A queue with everything it points to in ordinary memory, as the host lays it out for a kernel (DeviceQueue.java).
#include <memory>
#include <vector>

#include "gpunvme/gpunvme.cuh"

namespace twin {

using namespace gpunvme;

inline u32 log2_up(u32 n) {
  u32 bits = 0;
  while ((1ull << bits) < n) {
    bits++;
  }
  return bits;
}

// Owned by one thread while nobody drives the queue; nothing here is synchronised.
class QueueMemory {
 public:
  static constexpr u32 kErrors = 64;

  // `start` is the position from which both rings count: a multiple of their lengths, so that it changes nothing for the
  // controller, and any point where positions wrap can be reached. `place`: where the struct lies, if not here.
  QueueMemory(u32 qid, u32 depth, bool shared, u64 timeout_ns, const u32* stop, u32 start = 0,
              Queue* place = nullptr)
      : queue_(place != nullptr ? *place : own_),
        depth_(depth),
        sq_(1ull << log2_up(depth + 1)),
        cq_(1ull << log2_up(2 * depth)),
        slots_(depth),
        infos_(depth),
        marks_(sq_.size()),
        errors_(1 + kErrors),
        start_(start) {
    u32 slot_bits = depth == 1 ? 1 : log2_up(depth);
    free_.resize(shared ? depth / 32 : 1u << slot_bits);
    queue_.qid = qid;
    queue_.depth = depth;
    queue_.sq_bits = log2_up(depth + 1);
    queue_.cq_bits = log2_up(2 * depth);
    queue_.slot_bits = slot_bits;
    queue_.flags = queue_flags::kDoorbellsInMemory | (shared ? queue_flags::kShared : 0);
    queue_.timeout_ns = timeout_ns;
    queue_.sq = sq_.data();
    queue_.cq = cq_.data();
    queue_.sq_doorbell = &sq_doorbell_;
    queue_.cq_doorbell = &cq_doorbell_;
    queue_.slots = slots_.data();
    queue_.infos = infos_.data();
    queue_.free_slots = free_.data();
    queue_.marks = marks_.data();
    queue_.errors = errors_.data();
    queue_.stop = stop;
    errors_[0].capacity = kErrors;
    for (u32 i = 0; i < depth; i++) {
      slots_[i] = slot::kFree | i;
    }
    reset();
  }

  QueueMemory(const QueueMemory&) = delete;
  QueueMemory& operator=(const QueueMemory&) = delete;

  // What the host does after the controller was given the rings anew. Generations go on.
  void reset() {
    empty_rings();
    std::fill(marks_.begin(), marks_.end(), 0);
    bool shared = (queue_.flags & queue_flags::kShared) != 0;
    for (u32 i = 0; i < depth_; i++) {
      u32 cid = slot::cid(slots_[i]);
      slots_[i] = slot::kFree | cid;
      if (!shared) {
        free_[i] = queue_.next_cid(cid);
      }
    }
    if (shared) {
      std::fill(free_.begin(), free_.end(), ~0u);
    }
    queue_.sq_tail = start_;
    queue_.sq_rung = shared ? 0 : start_;
    queue_.free_head = 0;
    queue_.free_tail = shared ? 0 : depth_;
    *queue_.service_word() = service::word(start_, start_, false);
    queue_.cq_rung = start_;
    queue_.quarantined = 0;
  }

  // What the controller does when the host deletes a queue pair and creates it again in the same rings: it has none of the
  // entries, and expects to be told of the first.
  void empty_rings() {
    std::fill(sq_.begin(), sq_.end(), Sqe{});
    std::fill(cq_.begin(), cq_.end(), Cqe{});
    mem::store_system(&sq_doorbell_, 0u);
    mem::store_system(&cq_doorbell_, 0u);
  }

  Queue& queue() { return queue_; }
  u32 errors() const { return errors_[0].count; }
  u32 start() const { return start_; }

  // Slots that the next command may have.
  u32 free_count() const {
    if ((queue_.flags & queue_flags::kShared) == 0) {
      return queue_.free_tail - queue_.free_head;
    }
    u32 count = 0;
    for (u32 word : free_) {
      count += warp::popcount(word);
    }
    return count;
  }

 private:
  Queue own_ = {};
  Queue& queue_;
  u32 depth_;
  std::vector<Sqe> sq_;
  std::vector<Cqe> cq_;
  std::vector<u32> slots_;
  std::vector<SlotInfo> infos_;
  std::vector<u32> free_;
  std::vector<u32> marks_;
  std::vector<ErrorLog> errors_;  // the log, and behind its head the room for its records
  alignas(64) u32 sq_doorbell_ = 0;
  alignas(64) u32 cq_doorbell_ = 0;
  u32 start_;
};

}  // namespace twin
