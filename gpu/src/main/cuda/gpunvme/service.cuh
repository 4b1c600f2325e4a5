#pragma once
// The service of a shared queue: whoever holds its service word announces SQEs and hands out completions, for everybody.
// docs/shared-queue.md, "Serve", has the rules; names here are names there.
#include "queue.cuh"

namespace gpunvme {

// Called by groups of lanes of one warp that act for the same queue, all lanes of the group at once.
class Service {
 public:
  // A turn at serving, if nobody else is at it. True if there was one.
  GPUNVME_FN static bool serve(Queue* q, u32 group) {
    u32 leader = warp::lowest(group);
    u64 word = warp::lane() == leader ? mem::load(q->service_word()) : 0;
    word = warp::shuffle(group, word, leader);
    return (word & service::kLocked) == 0 && hold(q, group, word);
  }

  // The same by those that do nothing else; true if commands were announced or completions handed out meanwhile. In its `last`
  // turn a group makes sure that what is marked is announced, as a caller does that goes away: by itself, or by whoever holds
  // the word or takes it before this group does.
  GPUNVME_FN static bool turn(Queue* q, u32 group, bool last) {
    u32 leader = warp::lowest(group);
    u64 word = 0;
    if (warp::lane() == leader) {
      word = last ? mem::fetch_or(q->service_word(), service::kPending) | service::kPending : mem::load(q->service_word());
    }
    word = warp::shuffle(group, word, leader);
    if ((word & service::kLocked) != 0 || !hold(q, group, word)) {
      return false;
    }
    u64 after = warp::lane() == leader ? mem::load(q->service_word()) : 0;
    after = warp::shuffle(group, after, leader);
    return service::rung(after) != service::rung(word) || service::head(after) != service::head(word);
  }

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

 private:
  // How often a holder hands out completions because it was told of more. After that it only announces, until nobody has
  // told it of more while it did.
  static constexpr u32 kRounds = 4;

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

  // So many commands are worth a doorbell of their own; for fewer the marks are looked at again, so many times at most.
  static constexpr u32 kFew = 16;
  static constexpr u32 kLooks = 16;

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
      // Acquire: each lane, for the marks that it has read. A fence behind the barrier would come too late for it.
      mem::fence_gpu();
      warp::sync(group);
      // Release: the SQEs, whose writers have fenced, before the doorbell, which one lane stores for all.
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

  // SQEs written since the last doorbell, without a gap; at most as many as there are slots. If there are few, and others are
  // between their ticket and their mark, where nobody waits for anything, their commands are worth another look: one doorbell
  // for all.
  GPUNVME_FN static u32 count_marked(const Queue* q, u32 group, u32 rung, u32 width) {
    u32 marked = 0;
    u32 looks = kLooks;
    for (;;) {
      u32 first = rung + marked + warp::rank(group);
      u32 marks[kWindows];
      u32 tail = mem::load(&q->sq_tail);
      for (u32 i = 0; i < kWindows; i++) {
        marks[i] = mem::load(q->marks + ((first + i * width) & q->sq_mask()));
      }
      u32 found = 0;
      for (u32 i = 0; i < kWindows && found == i * width; i++) {
        found += leading(group, width, marks[i] == service::mark(first + i * width));
      }
      marked += found;
      if (found < kWindows * width) {
        tail = warp::shuffle(group, tail, warp::lowest(group));
        if (marked == 0 || marked >= kFew || service::same(tail, rung + marked) || --looks == 0) {
          return marked;
        }
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
};

}  // namespace gpunvme
