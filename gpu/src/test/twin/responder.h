#pragma once
// A controller for the stresses: sees to it that every command arrives once, in a slot of its own, and answers out of order,
// wrongly or not at all. What commands do is an Executor's.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "queue_memory.h"

namespace twin {

// A command as it arrives.
struct Arrived {
  u32 qid;
  u32 cid;
  u32 opcode;  // with the bits beside it
  u32 nsid;
  u32 blocks;
  u64 slba;
  u64 prp1;
  u64 prp2;
};

// What commands do. Called by the controller's thread.
class Executor {
 public:
  virtual ~Executor() = default;

  // A command has arrived that will end like this, or as the executor says. False: it is wrong, which was said, and gets no answer.
  virtual bool arrives(const Arrived& c, Status& s) = 0;

  // Its completion is posted next, perhaps long after its caller has given it up.
  virtual void ends(const Arrived&, Status) {}

  // It gets no completion, ever.
  virtual void is_lost(const Arrived&, Status) {}
};

// Of 10,000 commands each.
struct Faults {
  u32 status = 0;
  u32 duplicate = 0;
  u32 late = 0;
  u32 drop = 0;
  u32 unknown = 0;    // a completion more, with a CID that no slot has; depth must not be a power of two
  u32 malformed = 0;  // the SQID is another queue's for a moment
  u32 most_dropped = ~0u;  // of each queue
};

// Says what went wrong and goes on; the program fails in the end.
inline std::atomic<u32> violations{0};

inline void violation(const char* what, u64 a, u64 b) {
  if (violations++ < 20) {
    std::fprintf(stderr, "VIOLATION: %s (%llx, %llx)\n", what, a, b);
  }
}

// The controller's side of one queue; used by one thread.
class Responder {
 public:
  Responder(QueueMemory& memory, Executor& executor, const Faults& faults, u64 seed)
      : memory_(memory),
        q(memory.queue()),
        executor_(executor),
        faults_(faults),
        random_(seed),
        timeout_ns_(q.timeout_ns),
        held_(1ull << q.slot_bits),
        most_dropped_(std::min(q.depth / 4, faults.most_dropped)) {}

  // One round: fetches, answers some. False if there was nothing to do.
  bool step(bool clean) {
    if (clean) {
      faults_ = {};
    }
    bool busy = fetch();
    u64 now = nanos();
    while (!late_.empty() && (clean || late_.begin()->first <= now)) {
      ready_.push_back(late_.begin()->second);
      late_.erase(late_.begin());
    }
    // What stays is overtaken by what comes.
    size_t keep = clean ? 0 : random_() % 8;
    while (ready_.size() > keep && room()) {
      size_t at = random_() % ready_.size();
      Answer a = ready_[at];
      ready_[at] = ready_.back();
      ready_.pop_back();
      answer(a);
      busy = true;
    }
    if (!busy && !ready_.empty() && room()) {
      Answer a = ready_.back();
      ready_.pop_back();
      answer(a);
      busy = true;
    }
    return busy;
  }

  // The queue pair is deleted and created again: no command from before is answered, or has its data moved.
  void make_anew() {
    ready_.clear();
    late_.clear();
    std::fill(held_.begin(), held_.end(), false);
    head_ = 0;
    posted_ = 0;
    outstanding_ = 0;
    memory_.empty_rings();
  }

  u64 fetched() const { return fetched_; }
  u32 posted() const { return posted_.load(); }
  bool settled() const { return settled_.load(); }
  u64 doorbells() const { return doorbells_; }
  u64 late() const { return late_count_; }
  u64 dropped() const { return dropped_; }
  u64 duplicated() const { return duplicated_; }

 private:
  struct Answer {
    Arrived command;
    Status status;
    bool first;      // else a completion that nobody asked for
    bool malformed;
  };

  bool chance(u32 of_10000) { return of_10000 != 0 && random_() % 10000 < of_10000; }

  bool fetch() {
    u32 tail = mem::load_system(q.sq_doorbell);
    u32 mask = q.sq_mask();
    if (tail > mask) {
      violation("a doorbell value outside the ring", tail, mask);
      return false;
    }
    u32 announced = (tail - head_) & mask;
    settled_ = announced == 0 && ready_.empty() && late_.empty();
    if (announced == 0) {
      return false;
    }
    mem::fence_system();
    doorbells_++;
    outstanding_ += announced;
    if (outstanding_ > q.depth) {
      violation("more commands outstanding than slots", outstanding_, q.depth);
    }
    for (u32 i = 0; i < announced; i++) {
      take(q.sq + ((head_ + i) & mask));
    }
    head_ = tail;
    return true;
  }

  void take(const Sqe* sqe) {
    const Quad* quads = reinterpret_cast<const Quad*>(sqe);
    u32 cdw0 = mem::load_system(&quads[0].x);
    Arrived c = {q.qid, cdw0 >> 16, cdw0 & 0xFFFF, mem::load_system(&quads[0].y), (mem::load_system(&quads[3].x) & 0xFFFF) + 1,
                 wide(&quads[2].z, &quads[2].w), wide(&quads[1].z, &quads[1].w), wide(&quads[2].x, &quads[2].y)};
    u32 slot = c.cid & q.slot_mask();
    fetched_++;
    if (slot >= q.depth || held_[slot]) {
      violation("a command in a slot that another one still has: CID, SLBA", c.cid, c.slba);
      return;
    }
    held_[slot] = true;
    Status s = chance(faults_.status) ? 1 + c.slba % 0x7FFF : status::kSuccess;
    if (!executor_.arrives(c, s)) {
      return;
    }
    Answer a = {c, s, true, chance(faults_.malformed)};
    if (chance(faults_.drop) && dropped_ < most_dropped_) {
      dropped_++;  // its slot is held for ever
      executor_.is_lost(c, s);
    } else if (chance(faults_.late)) {
      late_count_++;
      // Some just when the caller gives up, some long after.
      late_.emplace(nanos() + timeout_ns_ + timeout_ns_ * (random_() % 5) / 8, a);
    } else {
      ready_.push_back(a);
    }
  }

  static u64 wide(const u32* low, const u32* high) {
    return mem::load_system(low) | static_cast<u64>(mem::load_system(high)) << 32;
  }

  // Whether the initiator has made room for a completion.
  bool room() const {
    return ((posted_ - mem::load_system(q.cq_doorbell)) & q.cq_mask()) != q.cq_mask();
  }

  void answer(const Answer& a) {
    u32 cid = a.command.cid;
    if (a.first) {
      executor_.ends(a.command, a.status);
      held_[cid & q.slot_mask()] = false;
      outstanding_--;
      if (chance(faults_.duplicate)) {
        duplicated_++;
        ready_.push_back({a.command, a.status, false, false});
      }
      if (q.depth < held_.size() && chance(faults_.unknown)) {
        Answer other = {a.command, a.status, false, false};
        other.command.cid |= q.slot_mask();
        ready_.push_back(other);
      }
    }
    u32 position = posted_;
    Cqe* entry = q.cq + (position & q.cq_mask());
    u32 wrong = a.malformed ? 0x10000 : 0;
    mem::store_system(&entry->dw0, 0u);
    mem::store_system(&entry->dw2, (q.qid << 16 | head_) ^ wrong);
    mem::fence_system();
    mem::store_system(&entry->dw3, a.status << 17 | (~(position >> q.cq_bits) & 1) << 16 | cid);
    if (a.malformed) {
      std::this_thread::yield();
      mem::store_system(&entry->dw2, q.qid << 16 | head_);
    }
    posted_ = position + 1;
  }

  QueueMemory& memory_;
  Queue& q;
  Executor& executor_;
  Faults faults_;
  std::mt19937_64 random_;
  const u64 timeout_ns_;  // of the callers, before the test is over and they have for ever
  std::vector<bool> held_;  // slots with a command here
  std::vector<Answer> ready_;
  std::multimap<u64, Answer> late_;  // by the time at which they are due
  u32 most_dropped_;
  u32 head_ = 0;
  std::atomic<u32> posted_{0};
  std::atomic<bool> settled_{true};
  u32 outstanding_ = 0;
  u64 fetched_ = 0;
  u64 doorbells_ = 0;
  u64 late_count_ = 0;
  u64 dropped_ = 0;
  u64 duplicated_ = 0;
};

// A thread that plays the controller for some queues, until it is told to end.
class Controller {
 public:
  // `sleeps`: when it has nothing to do. One that has slept gets a processor at once, even where those that wait for it poll
  // without a pause; else it takes its turn.
  Controller(std::vector<std::unique_ptr<QueueMemory>>& queues, Executor& executor, const Faults& faults, u64 seed, bool sleeps)
      : sleeps_(sleeps) {
    for (auto& q : queues) {
      responders_.push_back(std::make_unique<Responder>(*q, executor, faults, seed++));
    }
    anew_ = std::vector<std::atomic<bool>>(responders_.size());
    thread_ = std::thread([this] { run(); });
  }

  ~Controller() { end(); }

  // No faults any more, and everything late is due now.
  void clean() { clean_ = true; }

  void end() {
    if (thread_.joinable()) {
      end_ = true;
      thread_.join();
    }
  }

  Responder& of(size_t queue) { return *responders_[queue]; }

  // Makes a queue pair anew, and returns when that is done.
  void make_anew(size_t queue) {
    anew_[queue] = true;
    while (anew_[queue]) {
      std::this_thread::yield();
    }
  }

 private:
  void run() {
    for (u32 idle = 0; !end_; idle++) {
      bool busy = false;
      for (size_t i = 0; i < responders_.size(); i++) {
        if (anew_[i]) {
          responders_[i]->make_anew();
          anew_[i] = false;
        }
        busy |= responders_[i]->step(clean_);
      }
      if (busy) {
        idle = 0;
      } else if (!sleeps_ || idle < 8) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(1));
      }
    }
  }

  const bool sleeps_;
  std::vector<std::unique_ptr<Responder>> responders_;
  std::vector<std::atomic<bool>> anew_;  // of each
  std::atomic<bool> clean_{false};
  std::atomic<bool> end_{false};
  std::thread thread_;
};

}  // namespace twin
