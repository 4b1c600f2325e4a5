#pragma once
// The service of a shared queue: whoever holds its service word announces SQEs and hands out completions, for everybody.
// docs/shared-queue.md, "Serve", has the rules; names here are names there.
#include "queue.cuh"

namespace gpunvme {

namespace detail {

// Whoever holds the service word of a queue: a group of lanes of one warp, all of them at once. kAlone: one lane.
template <bool kAlone>
class Holder {
 public:
  // `seen`: the service word, which was unlocked. `command`: one that this lane waits for, or 0; `mark`: of its position if this
  // lane has just written it, else 0. `server`: the group does nothing but serve this queue.
  GPUNVME_FN Holder(Queue* queue, u32 lanes, u64 seen, u32 command, u32 mark, bool server)
      : q(queue),
        serves(server),
        own(command),
        own_mark(mark),
        word(seen),
        group(lanes),
        width(kAlone ? 1 : warp::popcount(lanes)),
        rank(kAlone ? 0 : warp::rank(lanes)),
        rung(service::rung(seen)),
        head(service::head(seen)),
        wide((seen & service::kWide) != 0),
        first_look(kAlone && command != 0 && mark != 0 ? mem::load(&queue->first_look) : 0) {}

  // Takes the word. False if somebody else was faster.
  GPUNVME_FN bool take() {
    u64 mine = (word | service::kLocked) & ~service::kPending;
    // Acquire: what the last holder left, and the marks of whoever set kPending.
    bool taken = leader() && mem::compare_exchange_acquire(q->service_word(), word, mine) == word;
    word = mine;
    taken = any(taken);
    sync();
    return taken;
  }

  // Serves, and leaves. A server, and a holder as long as a command of its own is in flight, stays for some passes: to leave and to
  // come back takes longer than a pass. Returns how a lone lane's own command ended, or kPending.
  GPUNVME_FN Status run() {
    bool left = false;
    u32 passes = 0;
    // Travels while the marks are counted: the last holder may have handed it out.
    own_slot = own_word();
    for (u32 round = 0; !left;) {
      u32 taken = pass(round < kRounds, serves && passes != 0);
      if (round == 0) {
        if (!kAlone && taken != 0) {
          own_slot = own_word();
        }
        if (own_slot != (slot::kInFlight | (own & 0xFFFF))) {
          own = 0;
        }
        if ((serves || any(own != 0)) && ++passes < (serves ? kServes : kStays)) {
          continue;
        }
      }
      if (told || given_back) {
        // The doorbells of two holders must arrive in order.
        fence();
      }
      sync();
      u64 next = service::word(rung, head, wide);
      left = any(leader() && leave(q->service_word(), word, next));
      sync();
      word = next | service::kLocked;
      round++;
    }
    return outcome;
  }

 private:
  // How often a holder hands out completions because it was told of more. After that it only announces, until nobody has
  // told it of more while it did.
  static constexpr u32 kRounds = 4;

  // Passes that a holder makes, at most, as long as a command of its own is in flight.
  static constexpr u32 kStays = kAlone ? 16 : 4;

  // Passes of a server, which then looks whether it is told to do something else.
  static constexpr u32 kServes = 16;

  // A window is one entry for each lane of the group. Windows are looked at kWindows at a time, so that their loads travel
  // together: marks always, completions only if the last pass found its first window full (one lane: two entries), because
  // one lane's loads of host memory follow each other by 0.3 us. Narrow groups take several turns, until they have handed out
  // what a whole warp does in one.
  static constexpr u32 kWindows = 4;
  static constexpr u32 kEnough = kWindows * warp::kWidth;

  // With so few commands in flight the first look may wait for one of them.
  static constexpr u32 kQuiet = 4;

  // So many commands are worth a doorbell of their own; for fewer the marks are looked at again, so many times at most.
  static constexpr u32 kFew = 16;
  static constexpr u32 kLooks = 16;

  GPUNVME_FN bool leader() const { return kAlone || rank == 0; }
  GPUNVME_FN bool any(bool yes) const { return kAlone ? yes : warp::ballot(group, yes) != 0; }
  GPUNVME_FN void sync() const {
    if (!kAlone) {
      warp::sync(group);
    }
  }

  GPUNVME_FN void fence() {
    mem::fence_system();
    told = false;
    given_back = false;
  }

  // What the slot of this lane's command holds.
  GPUNVME_FN u32 own_word() const { return own != 0 ? mem::load(q->slots + (own & q->slot_mask())) : 0; }

  // How many lanes of the group, from its first on and without a gap, say yes.
  GPUNVME_FN u32 leading(bool yes) const {
    if (kAlone) {
      return yes ? 1 : 0;
    }
    u32 no = warp::ballot(group, !yes);
    return no == 0 ? width : warp::popcount(group & ((1u << warp::lowest(no)) - 1));
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

  // Announces what is marked and, if asked to, hands out what has arrived. Returns how many completions that were. `again`: not even
  // a look if nothing seems to be in flight. It may be that something is: doubled completions count, too.
  GPUNVME_FN u32 pass(bool completions, bool again) {
    u32 windows = wide ? kWindows : 1;
    Pair cqe[kWindows];
    // Loads come back in their order: one lane would wait for the completions before it saw the marks.
    bool early = !kAlone && wide;
    if (early && completions) {
      look(cqe, windows);  // travels while the marks are counted
    }
    u32 marked = count_marked();
    bool fenced = false;
    if (marked != 0) {
      if (!kAlone) {
        // Acquire: each lane, for the marks that it has read. A fence behind the barrier would come too late for it.
        mem::fence_gpu();
        sync();
      }
      // Release: the SQEs, whose writers have fenced, before the doorbell, which one lane stores for all. A lane that announces
      // its own command alone has fenced when it wrote it.
      if (!kAlone || marked != 1 || service::mark(rung) != own_mark) {
        mem::fence_system();
      }
      fenced = early;
      rung += marked;
      if (leader()) {
        q->store_doorbell(q->sq_doorbell, rung & q->sq_mask());
        q->sq_doorbells++;
        q->submitted += marked;
      }
      told = true;
      first_look.start(kAlone && own != 0 && own_rung() && is_quiet());
    }
    if (!completions || (again && service::same(rung, head))) {
      return 0;
    }
    if (!early) {
      first_look.wait();
      look(cqe, windows);
    }
    u32 taken = arrived(cqe, windows);
    learn(taken != 0);
    bool waited = own != 0;
    wide = taken >= (kAlone ? 2 : width);
    if (kAlone && taken != 0 && windows == 1 && is_own(cqe[0])) {
      // The look has acquired the data for this lane. If its doorbell was the last, the controller has seen that.
      told = told && !own_rung();
    } else if (taken != 0 && !fenced) {
      // Acquire: the data that the CQEs vouch for, on behalf of those who wait for them.
      fence();
    }
    u32 done = taken;
    for (;; done += taken) {
      hand_out(cqe, taken);
      head += taken;
      // A lane that has what it waited for goes, if there was not more than that the last time.
      bool goes = kAlone && windows == 1 && waited && own == 0;
      if (taken < windows * width || done >= kEnough || goes) {
        break;
      }
      windows = kWindows;
      look(cqe, windows);
      taken = arrived(cqe, windows);
      if (taken == 0) {
        break;
      }
      fence();
    }
    wide = wide || (kAlone && done > 1);
    if (done != 0) {
      bool give_back = leader() && head - q->cq_rung > q->cq_mask() / 4;
      sync();
      if (give_back) {
        q->cq_rung = head;
        q->cq_doorbells++;
        q->store_doorbell(q->cq_doorbell, head & q->cq_mask());
      }
      given_back = any(give_back) || given_back;
    }
    return done;
  }

  // SQEs written since the last doorbell, without a gap; at most as many as there are slots. If there are few, and others are
  // between their ticket and their mark, where nobody waits for anything, their commands are worth another look: one doorbell
  // for all.
  GPUNVME_FN u32 count_marked() const {
    u32 marked = 0;
    u32 looks = kLooks;
    GPUNVME_ROLLED
    for (;;) {
      u32 first = rung + marked + rank;
      u32 seen[kWindows];
      u32 tail = mem::load(&q->sq_tail);
      for (u32 i = 0; i < kWindows; i++) {
        seen[i] = mem::load(q->marks + ((first + i * width) & q->sq_mask()));
      }
      u32 found = 0;
      for (u32 i = 0; i < kWindows && found == i * width; i++) {
        found += leading(seen[i] == service::mark(first + i * width));
      }
      marked += found;
      if (found < kWindows * width) {
        tail = kAlone ? tail : warp::shuffle(group, tail, warp::lowest(group));
        if (marked == 0 || marked >= kFew || service::same(tail, rung + marked) || --looks == 0) {
          return marked;
        }
      }
    }
  }

  // Starts the loads of some windows of completions. One lane acquires what it looks at, if that is a single entry.
  GPUNVME_FN void look(Pair (&cqe)[kWindows], u32 windows) const {
    if (kAlone && windows == 1) {
      cqe[0] = mem::load_system_acquire(entry(head));
      return;
    }
    for (u32 i = 0; i < kWindows; i++) {
      if (i < windows) {
        cqe[i] = mem::load_system(entry(head + rank + i * width));
      }
    }
  }

  GPUNVME_FN const Pair* entry(u32 position) const {
    return reinterpret_cast<const Pair*>(&q->cq[position & q->cq_mask()].dw2);
  }

  // Whether little is in flight beside; a hint, as doubled completions count, too.
  GPUNVME_FN bool is_quiet() const { return ((rung - head) & service::kPositions) <= kQuiet; }

  // Whether what this lane has just written is the last that was announced.
  GPUNVME_FN bool own_rung() const { return service::mark(rung - 1) == own_mark; }

  GPUNVME_FN void learn(bool found) {
    u32 before = first_look.learned();
    first_look.learn(found);
    if (kAlone && first_look.learned() != before) {
      mem::store(&q->first_look, first_look.learned());
    }
  }

  // Whether a completion is that of the command that this lane waits for.
  GPUNVME_FN bool is_own(const Pair& cqe) const { return own != 0 && cqe_cid(cqe.y) == (own & 0xFFFF); }

  // How many of the entries looked at are there, counted up to the first that is not.
  GPUNVME_FN u32 arrived(const Pair (&cqe)[kWindows], u32 windows) {
    u32 taken = 0;
    for (u32 i = 0; i < kWindows; i++) {
      if (i < windows && taken == i * width) {
        taken += arrived(cqe[i], head + i * width + rank);
      }
    }
    return taken;
  }

  // How many of a window's entries are there, counted up to the first that is not.
  GPUNVME_FN u32 arrived(Pair cqe, u32 position) {
    bool there = cqe_phase(cqe.y) == (~(position >> q->cq_bits) & 1);
    bool ours = cqe_sqid(cqe.x) == q->qid;
    u32 n = leading(there && ours);
    if (there && !ours && rank == n) {
      q->note_malformed(cqe.y);
    }
    return n;
  }

  // Gives the first `taken` completions to the slots they belong to.
  GPUNVME_FN void hand_out(const Pair (&cqe)[kWindows], u32 taken) {
    u32 old[kWindows];
    for (u32 i = 0; i < kWindows; i++) {
      if (i * width + rank < taken) {
        old[i] = kAlone && is_own(cqe[i]) ? complete_own(cqe_status(cqe[i].y)) : complete(cqe_cid(cqe[i].y), cqe_status(cqe[i].y));
      }
    }
    for (u32 i = 0; i < kWindows; i++) {
      if (i * width + rank < taken && old[i] != (slot::kInFlight | cqe_cid(cqe[i].y))) {
        unexpected(q, cqe_cid(cqe[i].y), cqe_status(cqe[i].y), old[i]);
      }
    }
  }

  // The same for the command that a lone lane waits for. If that was in flight when the word was taken nobody else can have changed
  // its slot: only the holder hands out, and only the owner gives up.
  GPUNVME_FN u32 complete_own(Status s) {
    u32 cid = own & 0xFFFF;
    own = 0;
    if (own_slot != (slot::kInFlight | cid)) {
      return complete(cid, s);
    }
    mem::store(q->slots + (cid & q->slot_mask()), slot::done_word(cid, s));
    outcome = s;
    return slot::kInFlight | cid;
  }

  // Gives a completion to the slot it belongs to. Returns what the slot held.
  GPUNVME_FN u32 complete(u32 cid, Status s) {
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

  Queue* const q;
  const bool serves;
  u32 own;  // 0 when it is over
  const u32 own_mark;
  u32 own_slot = 0;  // what its slot held when the word had been taken
  Status outcome = status::kPending;
  u64 word;
  const u32 group;
  const u32 width;
  const u32 rank;
  u32 rung;
  u32 head;
  bool wide;
  FirstLook first_look;
  bool told = false;        // a doorbell was stored that no fence has followed
  bool given_back = false;  // the same of completions
};

}  // namespace detail

// Called by groups of lanes of one warp that act for the same queue, all lanes of the group at once.
class Service {
 public:
  struct Turn {
    bool had;
    Status own;  // how a lone lane's command ended that was handed out in this turn; else kPending
  };

  // A turn at serving, if nobody else is at it. True if there was one. `own` and `own_mark`: see Holder.
  GPUNVME_FN static Turn serve(Queue* q, u32 group, u32 own, u32 own_mark) {
    u32 leader = warp::lowest(group);
    u64 word = warp::lane() == leader ? mem::load(q->service_word()) : 0;
    word = warp::shuffle(group, word, leader);
    return (word & service::kLocked) == 0 ? hold(q, group, word, own, own_mark) : Turn{false, status::kPending};
  }

  // The same by those that do nothing else; true if commands were announced or completions handed out meanwhile. In its `last`
  // turn a group makes sure that what is marked is announced, as a caller does that goes away: by itself, or by whoever holds
  // the word or takes it before this group does. `server`: this queue is the only one that the group serves, and it may stay.
  GPUNVME_FN static bool turn(Queue* q, u32 group, bool last, bool server) {
    u32 leader = warp::lowest(group);
    u64 word = 0;
    if (warp::lane() == leader) {
      word = last ? mem::fetch_or(q->service_word(), service::kPending) | service::kPending : mem::load(q->service_word());
    }
    word = warp::shuffle(group, word, leader);
    if ((word & service::kLocked) != 0 || !hold(q, group, word, 0, 0, server).had) {
      return false;
    }
    u64 after = warp::lane() == leader ? mem::load(q->service_word()) : 0;
    after = warp::shuffle(group, after, leader);
    return service::rung(after) != service::rung(word) || service::head(after) != service::head(word);
  }

  // Takes the word, which was seen unlocked, serves and leaves. False if somebody else was faster.
  GPUNVME_FN static Turn hold(Queue* q, u32 group, u64 word, u32 own, u32 own_mark, bool server = false) {
    return warp::alone(group) ? hold<true>(q, group, word, own, own_mark, server)
                              : hold<false>(q, group, word, own, own_mark, server);
  }

 private:
  template <bool kAlone>
  GPUNVME_NOINLINE static Turn hold(Queue* q, u32 group, u64 word, u32 own, u32 own_mark, bool server) {
    detail::Holder<kAlone> holder(q, group, word, own, own_mark, server);
    if (!holder.take()) {
      return {false, status::kPending};
    }
    return {true, holder.run()};
  }
};

}  // namespace gpunvme
