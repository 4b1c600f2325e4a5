#pragma once
// A queue pair for any number of threads: each submits its own command and waits for its own result. Nobody serves the
// queue for the others all the time; whoever waits may, for a moment.
//
// docs/shared-queue.md has the protocol with its proof by exhaustion; names here are names there.
#include "queue.cuh"

namespace gpunvme {

// A command that was submitted and not yet waited for.
struct Token {
  u32 cid;   // with kValid above it
  static constexpr u32 kValid = 1u << 16;

  GPUNVME_FN bool valid() const { return (cid & kValid) != 0; }
};

// Any thread may call at any time, whole warps and diverged ones. The lanes that call together for the same queue form a group
// and share the work; a warp's groups go on independently.
//
// Waits end at the queue's timeout or when the host says stop, whichever comes first. A caller holds at most what it has
// submitted: a lane that finds no free slot never keeps others from theirs. Commands submitted by submit() and not waited
// for keep their slots: more than `depth` of them by threads that do not wait end in kBusy.
class SharedQueue {
 public:
  GPUNVME_FN explicit SharedQueue(Queue* queue) : q(queue) {}

  // Runs one command of this thread and returns its status.
  GPUNVME_FN Status execute(const Command& c) {
    u32 group = callers();
    Status result = admit(group);
    bool needs = !failed(result);
    Patience patience(q);
    while (warp::ballot(group, needs) != 0) {
      Token token = {0};
      if (start(group, needs, c, token) != 0) {
        // Lanes that got no slot wait for those that did: a finished command must never wait for a slot, or groups could
        // hold each other's.
        Status s = await(group, token);
        if (token.valid()) {
          result = s;
          needs = false;
        }
      } else if (patience.over(group, serve(q, group))) {
        result = needs ? patience.stopped() ? status::kStopped : status::kBusy : result;
        needs = false;
      }
    }
    return result;
  }

  // Submits one command and returns when the controller has been told of it or is just being told. kSuccess: `token` is
  // valid and must be given to wait() once; c's data belongs to the controller until then.
  GPUNVME_FN Status submit(const Command& c, Token& token) {
    u32 group = callers();
    token.cid = 0;
    Status result = admit(group);
    bool needs = !failed(result);
    Patience patience(q);
    while (warp::ballot(group, needs) != 0) {
      if (start(group, needs, c, token) != 0) {
        needs = needs && !token.valid();
        tell(group);
      } else if (patience.over(group, serve(q, group))) {
        result = needs ? patience.stopped() ? status::kStopped : status::kBusy : result;
        needs = false;
      }
    }
    return result;
  }

  // As submit(), but kBusy at once if no slot is free. For callers that hold slots and must not wait for another.
  GPUNVME_FN Status try_submit(const Command& c, Token& token) {
    u32 group = callers();
    token.cid = 0;
    Status result = admit(group);
    bool needs = !failed(result);
    if (warp::ballot(group, needs) != 0 && start(group, needs, c, token) != 0) {
      tell(group);
    }
    return needs && !token.valid() ? static_cast<Status>(status::kBusy) : result;
  }

  // The status of a submitted command, once it is over. kStopped also if the host has recovered the queue since.
  GPUNVME_FN Status wait(Token& token) {
    Status result = await(callers(), token);
    token.cid = 0;
    return result;
  }

 private:
  // Bounds a wait without asking the clock every time round.
  class Patience {
   public:
    GPUNVME_FN explicit Patience(Queue* queue) : q(queue) {}

    // Gives way for a while, unless the caller was busy; true once the deadline has passed or the host says stop. The group
    // decides together. The deadline counts from the first look at the clock, a few microseconds after the start.
    GPUNVME_FN bool over(u32 group, bool busy) {
      tries++;
      if (!busy) {
        pause(tries < 4 ? 40 : 120);
      }
      if ((tries & 31) != 0) {
        return false;
      }
      u64 now = nanos();
      if (end == 0) {
        end = now + q->timeout_ns;
      }
      bool leader = warp::lane() == warp::lowest(group);
      halted = warp::ballot(group, leader && q->told_to_stop()) != 0;
      return halted || warp::ballot(group, leader && static_cast<long long>(now - end) >= 0) != 0;
    }

    GPUNVME_FN bool stopped() const { return halted; }

   private:
    Queue* const q;
    u64 end = 0;
    u32 tries = 0;
    bool halted = false;
  };

  // The group: the lanes that call together for this queue. Lanes of one warp may have different queues.
  GPUNVME_FN u32 callers() const {
    u32 active = warp::active();
    u64 mine = reinterpret_cast<u64>(q);
    u64 first = warp::shuffle(active, mine, warp::lowest(active));
    return warp::ballot(active, mine == first) == active ? active : warp::match(active, mine);
  }

  // ---- submission

  // Whether anything may be submitted: kSuccess, kStopped or kArgument. Without this a caller whose commands all complete
  // quickly would never look at the stop word.
  GPUNVME_FN Status admit(u32 group) const {
    if (!q->shared()) {
      return status::kArgument;
    }
    bool stop = warp::lane() == warp::lowest(group) && q->told_to_stop();
    return warp::ballot(group, stop) != 0 ? static_cast<Status>(status::kStopped) : static_cast<Status>(status::kSuccess);
  }

  // Submits for as many of the lanes in need as there are slots. Returns which.
  GPUNVME_FN u32 start(u32 group, bool needs, const Command& c, Token& token) {
    u32 s = take_slot(group, needs);
    bool got = s != kNone;
    u32 takers = warp::ballot(group, got);
    if (takers != 0) {
      token.cid = publish(group, takers, got, s, c, token.cid);
    }
    return takers;
  }

  static constexpr u32 kNone = ~0u;

  // One free slot for each lane that needs one, as far as they reach; kNone for the others. A warp starts looking at a word
  // of its own, which it mostly finds as full as it left it.
  GPUNVME_FN u32 take_slot(u32 group, bool needs) {
    u32 wanting = warp::ballot(group, needs);
    u32 rank = warp::rank(wanting);
    u32 words = (q->depth + 31) / 32;
    u32 at = home() % words;
    u32 result = kNone;
    u32 served = 0;
    u32 want = warp::popcount(wanting);
    u32 leader = warp::lowest(group);
    for (u32 probe = 0; probe < words && served < want; probe++) {
      u32 bits = 0;
      if (warp::lane() == leader) {
        u32 chosen = choose(q->free_slots + at, want - served);
        // Acquire: the last owner of a slot was done with it before it set the bit.
        bits = chosen == 0 ? 0 : mem::fetch_and_acquire(q->free_slots + at, ~chosen) & chosen;
      }
      bits = warp::shuffle(group, bits, leader);
      u32 n = warp::popcount(bits);
      if (needs && rank >= served && rank < served + n) {
        result = at * 32 + warp::nth(bits, rank - served);
      }
      served += n;
      at = at + 1 == words ? 0 : at + 1;
    }
    return result;
  }

  // At most n free slots of a word: the lowest ones.
  GPUNVME_FN static u32 choose(const u32* word, u32 n) {
    if (n >= 32) {
      return ~0u;  // whatever is free
    }
    u32 open = mem::load(word);
    if (warp::popcount(open) <= n) {
      return open;
    }
    u32 chosen = 0;
    for (u32 i = 0; i < n; i++) {
      chosen |= open & (0 - open);
      open &= open - 1;
    }
    return chosen;
  }

  // Where this warp looks for slots first.
  GPUNVME_FN static u32 home() {
#if GPUNVME_GPU
    u32 warps = (blockDim.x * blockDim.y * blockDim.z + 31) / 32;
    u32 thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    return (blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z)) * warps + thread / 32;
#else
    static thread_local char here;
    return static_cast<u32>(reinterpret_cast<u64>(&here) >> 12);
#endif
  }

  // Writes the SQEs of the lanes that got a slot and marks them as written. Between the ticket and the mark there is
  // no wait and no way out: an unmarked position would hold up everybody behind it.
  GPUNVME_FN u32 publish(u32 group, u32 takers, bool got, u32 s, const Command& c, u32 before) {
    u32 leader = warp::lowest(group);
    u32 count = warp::popcount(takers);
    u32 first = 0;
    if (warp::lane() == leader) {
      first = mem::fetch_add(&q->sq_tail, count);
    }
    u32 cid = 0;
    if (got) {
      cid = q->next_cid(slot::cid(mem::load(q->slots + s)));
      q->infos[s] = {c.slba, c.user, c.opcode};
      mem::store(q->slots + s, slot::kInFlight | cid);
    }
    first = warp::shuffle(group, first, leader);
    u32 position = first + warp::rank(takers);
    if (takers == warp::kFull) {
      detail::write_sqes(q, q->sq, q->sq_mask(), first, count, c, cid);
    } else if (got) {
      detail::write_sqe(q, position, c, cid);
    }
    warp::sync(group);
    // Release, system scope: the controller reads the SQE once the doorbell says so.
    mem::fence_system();
    if (got) {
      mem::store(q->marks + (position & q->sq_mask()), mark(position));
    }
    return got ? Token::kValid | cid : before;
  }

  GPUNVME_FN static u32 mark(u32 position) { return (position & service::kPositions) + 1; }

  // Makes sure that somebody announces what this group has marked: the group itself, or whoever holds the service word and
  // will find it pending, or whoever takes it before this group does and scans after these marks.
  GPUNVME_FN void tell(u32 group) {
    warp::sync(group);
    // Release: the marks before the word.
    mem::fence_gpu();
    u32 leader = warp::lowest(group);
    u64 word = 0;
    if (warp::lane() == leader) {
      word = mem::fetch_or(q->service_word(), service::kPending) | service::kPending;
    }
    word = warp::shuffle(group, word, leader);
    if ((word & service::kLocked) == 0) {
      hold(q, group, word);
    }
  }

  // ---- service: whoever holds the word announces SQEs and hands out completions, for everybody

  // A turn at serving, if nobody else is at it. True if there was one.
  GPUNVME_FN static bool serve(Queue* q, u32 group) {
    u32 leader = warp::lowest(group);
    u64 word = warp::lane() == leader ? mem::load(q->service_word()) : 0;
    word = warp::shuffle(group, word, leader);
    return (word & service::kLocked) == 0 && hold(q, group, word);
  }

  // How often a holder hands out completions because it was told of more. After that it only announces, until nobody has
  // told it of more while it did.
  static constexpr u32 kRounds = 4;

  // Takes the word, which was seen unlocked, serves and leaves. False if somebody else was faster.
  GPUNVME_NOINLINE static bool hold(Queue* q, u32 group, u64 word) {
    bool leader = warp::lane() == warp::lowest(group);
    u64 mine = (word | service::kLocked) & ~service::kPending;
    // Acquire: what the last holder left, and the marks of whoever set kPending.
    bool taken = leader && mem::compare_exchange_acquire(q->service_word(), word, mine) == word;
    if (warp::ballot(group, taken) == 0) {
      return false;
    }
    warp::sync(group);
    u32 rung = service::rung(word);
    u32 head = service::head(word);
    bool wide = (word & service::kWide) != 0;
    bool left = false;
    for (u32 round = 0; !left; round++) {
      bool told = pass(q, group, rung, head, wide, round < kRounds);
      if (told) {
        // The doorbells of two holders must arrive in order.
        mem::fence_system();
      }
      warp::sync(group);
      u64 next = service::word(rung, head, wide);
      left = warp::ballot(group, leader && leave(q->service_word(), mine, next)) != 0;
      warp::sync(group);
      mine = next | service::kLocked;
    }
    return true;
  }

  // Only kPending can have changed since the word was taken. If it is set the holder stays: false.
  GPUNVME_FN static bool leave(u64* word, u64 mine, u64 next) {
    if (mem::compare_exchange(word, mine, next) == mine) {
      return true;
    }
    // Acquire: the marks of whoever set kPending.
    mem::compare_exchange_acquire(word, mine | service::kPending, next | service::kLocked);
    return false;
  }

  // A window is one entry for each lane of the group. Windows are looked at kWindows at a time, so that their loads travel
  // together: marks always, completions only if the last pass found its first window full. Narrow groups take several turns,
  // until they have handed out what a whole warp does in one.
  static constexpr u32 kWindows = 4;
  static constexpr u32 kEnough = kWindows * warp::kWidth;

  // Announces what is marked and, if asked to, hands out what has arrived. True if a doorbell was stored.
  GPUNVME_FN static bool pass(Queue* q, u32 group, u32& rung, u32& head, bool& wide, bool completions) {
    u32 width = warp::popcount(group);
    bool leader = warp::lane() == warp::lowest(group);
    u32 windows = wide ? kWindows : 1;
    Pair cqe[kWindows];
    bool fenced = false;
    if (wide && completions) {
      look(q, cqe, head + warp::rank(group), width, windows);  // travels while the marks are counted
    }
    u32 marked = count_marked(q, group, rung, width);
    if (marked != 0) {
      // Release: the SQEs, whose writers have fenced, before the doorbell. All lanes have read marks, one stores it.
      warp::sync(group);
      mem::fence_system();
      fenced = wide;
      rung += marked;
      if (leader) {
        q->store_doorbell(q->sq_doorbell, rung & q->sq_mask());
        q->sq_doorbells++;
        q->submitted += marked;
      }
    }
    if (!completions) {
      return marked != 0;
    }
    if (!wide) {
      look(q, cqe, head + warp::rank(group), width, windows);
    }
    u32 taken = arrived(q, group, cqe, head, width, windows);
    wide = taken >= width;
    if (taken != 0 && !fenced) {
      // Acquire: the data that the CQEs vouch for, on behalf of those who wait for them.
      mem::fence_system();
    }
    for (u32 done = taken;; done += taken) {
      hand_out(q, group, cqe, taken, width);
      head += taken;
      if (taken < windows * width || done >= kEnough) {
        break;
      }
      windows = kWindows;
      look(q, cqe, head + warp::rank(group), width, windows);
      taken = arrived(q, group, cqe, head, width, windows);
      if (taken == 0) {
        break;
      }
      mem::fence_system();
    }
    bool give_back = leader && head - q->cq_rung > q->cq_mask() / 4;
    warp::sync(group);
    if (give_back) {
      q->cq_rung = head;
      q->cq_doorbells++;
      q->store_doorbell(q->cq_doorbell, head & q->cq_mask());
    }
    return marked != 0 || warp::ballot(group, give_back) != 0;
  }

  // SQEs written since the last doorbell, without a gap; at most as many as there are slots.
  GPUNVME_FN static u32 count_marked(const Queue* q, u32 group, u32 rung, u32 width) {
    u32 marked = 0;
    for (;;) {
      u32 first = rung + marked + warp::rank(group);
      u32 marks[kWindows];
      for (u32 i = 0; i < kWindows; i++) {
        marks[i] = mem::load(q->marks + ((first + i * width) & q->sq_mask()));
      }
      u32 found = 0;
      for (u32 i = 0; i < kWindows && found == i * width; i++) {
        found += leading(group, width, marks[i] == mark(first + i * width));
      }
      marked += found;
      if (found < kWindows * width) {
        return marked;
      }
    }
  }

  // Starts the loads of some windows of completions.
  GPUNVME_FN static void look(const Queue* q, Pair (&cqe)[kWindows], u32 first, u32 width, u32 windows) {
    for (u32 i = 0; i < kWindows; i++) {
      if (i < windows) {
        cqe[i] = mem::load_system(reinterpret_cast<const Pair*>(&q->cq[(first + i * width) & q->cq_mask()].dw2));
      }
    }
  }

  // How many of the entries looked at are there, counted up to the first that is not.
  GPUNVME_FN static u32 arrived(Queue* q, u32 group, const Pair (&cqe)[kWindows], u32 head, u32 width, u32 windows) {
    u32 taken = 0;
    for (u32 i = 0; i < kWindows; i++) {
      if (i < windows && taken == i * width) {
        taken += arrived(q, group, cqe[i], head + i * width + warp::rank(group), width);
      }
    }
    return taken;
  }

  // Gives the first `taken` completions to the slots they belong to.
  GPUNVME_FN static void hand_out(Queue* q, u32 group, const Pair (&cqe)[kWindows], u32 taken, u32 width) {
    u32 rank = warp::rank(group);
    u32 old[kWindows];
    for (u32 i = 0; i < kWindows; i++) {
      if (i * width + rank < taken) {
        old[i] = complete(q, cqe_cid(cqe[i].y), cqe_status(cqe[i].y));
      }
    }
    for (u32 i = 0; i < kWindows; i++) {
      if (i * width + rank < taken && old[i] != (slot::kInFlight | cqe_cid(cqe[i].y))) {
        unexpected(q, cqe_cid(cqe[i].y), cqe_status(cqe[i].y), old[i]);
      }
    }
  }

  // How many lanes of the group, from its first on and without a gap, say yes.
  GPUNVME_FN static u32 leading(u32 group, u32 width, bool yes) {
    u32 no = warp::ballot(group, !yes);
    return no == 0 ? width : warp::popcount(group & ((1u << warp::lowest(no)) - 1));
  }

  // How many of a window's entries are there, counted up to the first that is not.
  GPUNVME_FN static u32 arrived(Queue* q, u32 group, Pair cqe, u32 position, u32 width) {
    bool there = cqe_phase(cqe.y) == (~(position >> q->cq_bits) & 1);
    bool ours = cqe_sqid(cqe.x) == q->qid;
    u32 n = leading(group, width, there && ours);
    if (there && !ours && warp::rank(group) == n) {
      q->note_malformed(cqe.y);
    }
    return n;
  }

  // Gives a completion to the slot it belongs to. Returns what the slot held.
  GPUNVME_FN static u32 complete(Queue* q, u32 cid, Status s) {
    u32 at = cid & q->slot_mask();
    return at >= q->depth ? static_cast<u32>(slot::kFree)
                          : mem::compare_exchange(q->slots + at, slot::kInFlight | cid, slot::done_word(cid, s));
  }

  GPUNVME_NOINLINE static void unexpected(Queue* q, u32 cid, Status s, u32 old) {
    u32 at = cid & q->slot_mask();
    if (at >= q->depth) {
      mem::fetch_add(&q->unknown, 1ull);
      q->report(trouble::kUnknown, s, cid);
    } else if (old == (slot::kQuarantined | cid) &&
               mem::compare_exchange(q->slots + at, old, slot::kFree | cid) == old) {
      mem::fetch_add(&q->late, 1ull);
      q->report(trouble::kLate, s, cid, q->infos[at]);
      mem::fetch_add(&q->quarantined, ~0u);
      mem::or_release(q->free_slots + at / 32, 1u << at % 32);
    } else {
      mem::fetch_add(&q->stale, 1ull);
      q->report(trouble::kStale, s, cid);
    }
  }

  // ---- the end of a command

  // Waits until the commands of all lanes with a valid token are over; the other lanes of the group help to serve.
  GPUNVME_FN Status await(u32 group, const Token& token) {
    u32 cid = token.cid & 0xFFFF;
    u32* word = q->slots + (cid & q->slot_mask());
    bool waiting = token.valid();
    Status result = status::kArgument;
    Patience patience(q);
    for (;;) {
      u32 seen = waiting ? mem::load(word) : 0;
      if (waiting && seen != (slot::kInFlight | cid)) {
        result = outcome(seen, cid);
        waiting = false;
      }
      if (warp::ballot(group, waiting) == 0) {
        break;
      }
      if (patience.over(group, serve(q, group))) {
        if (waiting) {
          result = give_up(q, word, cid, patience.stopped());
        }
        break;
      }
    }
    finish(group, token, cid, result);
    return result;
  }

  // What a slot's word says of the command `cid`. Another command's word: the host has recovered the queue meanwhile.
  GPUNVME_FN static Status outcome(u32 word, u32 cid) {
    return slot::done(word) && slot::cid(word) == cid ? slot::status(word) : static_cast<Status>(status::kStopped);
  }

  // At the deadline: the command's fate is unknown, unless it was completed this very moment.
  GPUNVME_NOINLINE static Status give_up(Queue* q, u32* word, u32 cid, bool stopped) {
    // Before the exchange: after it a late completion may give the slot to somebody else at any moment.
    SlotInfo info = q->infos[cid & q->slot_mask()];
    mem::fetch_add(&q->quarantined, 1u);
    u32 old = mem::compare_exchange(word, slot::kInFlight | cid, slot::kQuarantined | cid);
    if (old != (slot::kInFlight | cid)) {
      mem::fetch_add(&q->quarantined, ~0u);
      return outcome(old, cid);
    }
    Status s = stopped ? status::kStopped : status::kTimeout;
    mem::fetch_add(&q->timeouts, 1ull);
    q->report(trouble::kTimeout, s, cid, info);
    return s;
  }

  // Frees the slots of the commands that are over; quarantined ones stay taken.
  GPUNVME_FN void finish(u32 group, const Token& token, u32 cid, Status result) {
    u32 at = cid & q->slot_mask();
    bool over = token.valid() && (result & status::kMade) == 0;
    if (over) {
      // Acquire: whoever handed the completion out had seen the data in place.
      mem::load_acquire(q->slots + at);
      if (failed(result)) {
        mem::fetch_add(&q->failures, 1ull);
        q->report(trouble::kStatus, result, cid, q->infos[at]);
      }
    }
    release(group, over, at);
    u32 count = warp::popcount(warp::ballot(group, over));
    if (count != 0 && warp::lane() == warp::lowest(group)) {
      mem::fetch_add(&q->completed, static_cast<u64>(count));
    }
  }

  // Sets free bits, with one operation if all of them are in one word.
  GPUNVME_FN void release(u32 group, bool over, u32 at) {
    u32 ending = warp::ballot(group, over);
    if (ending == 0) {
      return;
    }
    warp::sync(group);
    u32 first = warp::lowest(ending);
    u32 word = warp::shuffle(group, at / 32, first);
    u32 same = warp::ballot(group, !over || at / 32 == word);
    if (same == group && ending == warp::kFull && warp::kWidth == 32) {
      if (warp::lane() == first) {
        mem::or_release(q->free_slots + word, ~0u);
      }
    } else if (over) {
      mem::or_release(q->free_slots + at / 32, 1u << at % 32);
    }
  }

  Queue* const q;
};

}  // namespace gpunvme
