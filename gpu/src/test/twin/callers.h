#pragma once
// Threads that use queues as kernels do, and check what they get.
#include <deque>

#include "responder.h"

namespace twin {

// The data of one command. Its words are plain memory on purpose: they are in order only if the queue puts them in order, and
// ThreadSanitizer says so if not. The caller's until submission, then the controller's until the result is there.
struct Work {
  u64 number;      // slba of the command
  u64 sent;        // what a write would carry: scramble(number)
  u64 received;    // what a read would bring: ~scramble(number)
  Status answer;   // the status that the completion carries
  u32 fetched;     // how often the command arrived
};

// How often a command may arrive: more than once where recoveries end commands and callers submit them again.
inline std::atomic<u32> most_fetched{1};

inline u64 scramble(u64 n) {
  n = (n ^ n >> 31) * 0x9E3779B97F4A7C15ull;
  return n ^ n >> 29;
}

// What the callers of one queue saw; each has its own, added up in the end.
struct Seen {
  u64 submitted = 0;
  u64 completed = 0;  // with a status from the controller
  u64 failures = 0;
  u64 timeouts = 0;
  u64 stopped = 0;
  u64 busy = 0;
  u64 aborted = 0;  // by a recovery

  void add(const Seen& o) {
    submitted += o.submitted;
    completed += o.completed;
    failures += o.failures;
    timeouts += o.timeouts;
    stopped += o.stopped;
    busy += o.busy;
    aborted += o.aborted;
  }
};

// The commands of one thread. Work whose fate is unknown belongs to the controller until the end of the round.
class Works {
 public:
  explicit Works(u64 thread) : next_(thread << 40) {}

  Work* make() {
    if (spare_.empty()) {
      all_.emplace_back();
      spare_.push_back(&all_.back());
    }
    Work* w = spare_.back();
    spare_.pop_back();
    start(*w, next_++);
    return w;
  }

  static void start(Work& w, u64 number) { w = {number, scramble(number), 0, 0, 0}; }

  static Command command(const Work* w) {
    return {opcode::kRead, 1, w->number, 1, 0, reinterpret_cast<u64>(w), scramble(w->number), 0};
  }

  void over(Work* w, Status s, Seen& seen) {
    if (check(w, s, seen)) {
      spare_.push_back(w);
    }
  }

  // Checks that a command's own result arrived. False if its fate is unknown.
  static bool check(Work* w, Status s, Seen& seen) {
    if (s == status::kBusy) {
      seen.busy++;
    } else if (s == status::kTimeout || s == status::kStopped) {
      seen.submitted++;
      (s == status::kTimeout ? seen.timeouts : seen.stopped)++;
      return false;
    } else if (s == status::kAbortedByHost && most_fetched > 1 && w->answer != s) {
      seen.submitted++;
      seen.aborted++;
    } else if ((s & status::kMade) != 0) {
      violation("a status that nobody gives: status, SLBA", s, w->number);
    } else {
      seen.submitted++;
      seen.completed++;
      seen.failures += failed(s);
      if (w->answer != s || w->fetched == 0 || w->fetched > most_fetched || w->received != ~scramble(w->number)) {
        violation("not the command's own result: status, SLBA", s, w->number);
      }
    }
    return true;
  }

 private:
  u64 next_;
  std::deque<Work> all_;
  std::vector<Work*> spare_;
};

// The controller's side: executes no command, but sees to it that every one arrives whole.
class WorkExecutor : public Executor {
 public:
  bool arrives(const Arrived& c, Status& s) override {
    if (c.opcode != opcode::kRead || c.nsid != 1 || c.prp2 != scramble(c.slba) || c.prp1 == 0) {
      violation("a torn or old submission queue entry: CDW0, SLBA", c.opcode | c.cid << 16, c.slba);
      return false;
    }
    Work& work = *reinterpret_cast<Work*>(c.prp1);
    if (work.number != c.slba || work.sent != scramble(c.slba) || ++work.fetched > most_fetched) {
      violation("a command without its data, or arrived twice: SLBA, times", c.slba, work.fetched);
      return false;
    }
    work.answer = s;
    work.received = ~scramble(c.slba);
    return true;
  }
};

// Where the callers of a queue leave a command for each other.
class Exchange {
 public:
  ~Exchange() { delete left_.load(); }

  // Leaves a command and takes what was left before; that may be nothing, with work == nullptr.
  void swap(Token& token, Work*& work) {
    Left* mine = nullptr;
    if (work != nullptr) {
      mine = new Left{{}, work};
      token.park(mine->token);
    }
    Left* other = left_.exchange(mine, std::memory_order_acq_rel);
    work = nullptr;
    if (other != nullptr) {
      token = Token::adopt(other->token);
      work = other->work;
      delete other;
    }
  }

 private:
  struct Left {
    ParkedToken token;
    Work* work;
  };

  std::atomic<Left*> left_{nullptr};
};

// Commands one by one and in bunches, results taken in any order and in any way, and of each other's. Q: SharedQueue or
// ServedQueue.
template <class Q>
class SharedCaller {
 public:
  SharedCaller(Queue* queue, Exchange& exchange, Works& works, u64 seed)
      : q_(queue), exchange_(exchange), works_(works), random_(seed) {}

  Seen run(u64 commands, u32 most) {
    for (u64 done = 0; done < commands;) {
      u32 bunch = random_() % 3 == 0 ? 1 : 1 + random_() % most;
      done += bunch;
      if (bunch == 1) {
        Work* w = works_.make();
        works_.over(w, q_.execute(Works::command(w)), seen_);
      } else {
        submit(bunch);
        take();
      }
    }
    // Nobody comes for what was left here.
    Token token;
    Work* w = nullptr;
    exchange_.swap(token, w);
    if (w != nullptr) {
      works_.over(w, q_.wait(token), seen_);
    }
    return seen_;
  }

 private:
  void submit(u32 bunch) {
    for (u32 i = 0; i < bunch; i++) {
      Work* w = works_.make();
      Token token;
      Status s = q_.submit(Works::command(w), token);
      if (failed(s)) {
        if (s == status::kStopped) {
          seen_.stopped++;  // nothing was submitted
        } else {
          works_.over(w, s, seen_);
        }
        continue;
      }
      if (random_() % 8 == 0) {
        exchange_.swap(token, w);
      }
      if (w != nullptr) {
        tokens_.push_back(std::move(token));
        waits_for_.push_back(w);
      }
    }
  }

  void take() {
    bool quiet = random_() % 64 == 0 && q_.quiet() == status::kSuccess;
    while (!tokens_.empty()) {
      u32 at = static_cast<u32>(random_() % tokens_.size());
      if (quiet) {
        Status s = q_.test(tokens_[at]);
        if (s == status::kPending) {
          violation("in flight behind quiet: SLBA", waits_for_[at]->number, 0);
          return;
        }
        over(at, s);
        continue;
      }
      Status s = status::kPending;
      switch (random_() % 3) {
        case 0:
          s = q_.wait_any(tokens_.data(), static_cast<u32>(tokens_.size()), at);
          break;
        case 1:
          s = q_.test(tokens_[at]);
          if (s == status::kPending) {
            q_.poll();
            continue;
          }
          break;
        default:
          s = q_.wait(tokens_[at]);
      }
      over(at, s);
    }
  }

  void over(u32 at, Status s) {
    Work* w = waits_for_[at];
    if (tokens_[at].valid()) {
      violation("a token that is still valid: SLBA", w->number, 0);
    }
    if (at + 1 != tokens_.size()) {
      tokens_[at] = std::move(tokens_.back());
      waits_for_[at] = waits_for_.back();
    }
    tokens_.pop_back();
    waits_for_.pop_back();
    works_.over(w, s, seen_);
  }

  Q q_;
  Exchange& exchange_;
  Works& works_;
  std::mt19937_64 random_;
  Seen seen_;
  std::vector<Token> tokens_;
  std::vector<Work*> waits_for_;  // of each token
};

// One warp's worth, as the transfer kernel does it.
class ExclusiveCaller {
 public:
  ExclusiveCaller(Queue* queue, Works& works, u64 commands) : queue_(queue), works_(works), left_(commands) {}

  Seen run() {
    ExclusiveQueue q(queue_);
    q.run(*this, *this);
    q.close();
    return seen_;
  }

  bool take(bool wanted, Command& c) {
    if (!wanted || left_ == 0) {
      return false;
    }
    left_--;
    Work* w = works_.make();
    u32 user;
    if (spare_.empty()) {
      user = static_cast<u32>(at_.size());
      at_.push_back(w);
    } else {
      user = spare_.back();
      spare_.pop_back();
      at_[user] = w;
    }
    c = Works::command(w);
    c.user = user;
    return true;
  }

  void done(bool valid, u32 user, u64 slba, Status s) {
    if (!valid) {
      return;
    }
    Work* w = user < at_.size() ? at_[user] : nullptr;
    if (w == nullptr || w->number != slba) {
      violation("an end of no command: user, SLBA", user, slba);
      return;
    }
    at_[user] = nullptr;
    spare_.push_back(user);
    works_.over(w, s, seen_);
  }

 private:
  Queue* queue_;
  Works& works_;
  u64 left_;
  Seen seen_;
  std::vector<Work*> at_;  // by the number that goes with a command
  std::vector<u32> spare_;
};

// One block's worth. The warps share no lock, and the counter that they take from orders nothing: what one of them writes about
// a command reaches the one that ends it through the queue, or is a data race.
class BlockCaller {
 public:
  // The caller's work starts with number `first`; kept until the end of the round.
  BlockCaller(Queue* queue, u32 warps, u64 first, u64 commands)
      : queue_(queue), warps_(warps), first_(first), works_(commands), ended_(commands) {}

  Seen run() {
    block::Twin block(warps_);
    std::vector<Seen> seen(warps_);
    std::vector<std::thread> threads;
    for (u32 i = 0; i < warps_; i++) {
      threads.emplace_back([this, i, &block, &seen] {
        block::Member member(block, i);
        GPUNVME_SHARED(BlockQueue::Shared, shared);
        Part part(*this);
        BlockQueue q(queue_, shared);
        q.run(part, part);
        q.close();
        seen[i] = part.seen;
      });
    }
    Seen sum;
    for (u32 i = 0; i < warps_; i++) {
      threads[i].join();
      sum.add(seen[i]);
    }
    return sum;
  }

 private:
  class Part {
   public:
    explicit Part(BlockCaller& caller) : c(caller) {}

    bool take(bool wanted, Command& command) {
      command = {};
      u64 at = wanted ? c.next_.fetch_add(1, std::memory_order_relaxed) : c.works_.size();
      if (at >= c.works_.size()) {
        return false;
      }
      Work& w = c.works_[at];
      Works::start(w, c.first_ + at);
      command = Works::command(&w);
      command.user = static_cast<u32>(at);
      return true;
    }

    void done(bool valid, u32 user, u64 slba, Status s) {
      if (!valid) {
        return;
      }
      Work* w = user < c.works_.size() ? &c.works_[user] : nullptr;
      if (w == nullptr || w->number != slba || c.ended_[user]++ != 0) {
        violation("an end of no command: user, SLBA", user, slba);
        return;
      }
      Works::check(w, s, seen);
    }

    Seen seen;

   private:
    BlockCaller& c;
  };

  Queue* queue_;
  u32 warps_;
  u64 first_;
  std::vector<Work> works_;
  std::vector<u8> ended_;  // how often
  std::atomic<u64> next_{0};
};

}  // namespace twin
