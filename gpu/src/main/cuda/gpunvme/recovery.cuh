#pragma once
// Recovery of shared queues while kernels drive them. The host deletes and creates queue pairs at the controller; meanwhile, and
// while the words of the queues are set back, no thread of a kernel may be at them. docs/shared-queue.md, "Recovery while kernels
// run", has the rules; names here are names there.
//
//   host:    asked = n            makes queue pairs anew, made = n
//   kernel:             pauses                                      sets back what is new, goes on
//
// Whoever helps to serve, and whoever serves for others, looks after this when the stop word says so. One thread of them does
// the work.
#include "service.cuh"

namespace gpunvme {

// The low bits of Recovery::state.
namespace recovery {
constexpr u32 kRuns = 0;
constexpr u32 kPausing = 1;
constexpr u32 kPaused = 2;
constexpr u32 kResuming = 3;
constexpr u32 kPhases = 3;

GPUNVME_FN u32 number(u32 state) { return state >> 2; }
}  // namespace recovery

namespace detail {

// What one lane does for all queues of an SSD.
class Recoverer {
 public:
  // The next step, if it is the kernel's turn and no other thread is at it. `stop` ends it: the host recovers the queues when the
  // kernels are over.
  GPUNVME_NOINLINE static void step(Recovery* r, const u32* stop) {
    if (r == nullptr) {
      return;
    }
    u32 seen = mem::load(&r->state);
    u32 phase = seen & recovery::kPhases;
    u32 next = recovery::number(seen) + 1;
    if (phase == recovery::kPausing) {
      // Whoever pauses needs every service word, which all who wait want, too: they stay out of the way.
      GPUNVME_ROLLED
      for (u32 i = 0; i < 64 && mem::load(&r->state) == seen; i++) {
        pause(16000);
      }
      return;
    }
    bool pauses = phase == recovery::kRuns && mem::load_system(&r->asked) == next;
    bool resumes = phase == recovery::kPaused && mem::load_system(&r->made) == next;
    // To the phase behind it; the two that threads work in are left by nobody else.
    if ((!pauses && !resumes) || mem::compare_exchange(&r->state, seen, seen + 1) != seen) {
      return;
    }
    // Acquire: what whoever was at it before has left, and the rings, which the host has emptied.
    mem::fence_system();
    GPUNVME_ROLLED
    for (u32 i = 0; i < r->queue_count; i++) {
      Queue* q = r->queues + i;
      if (pauses) {
        if (!pause_queue(q, stop)) {
          return;
        }
      } else {
        if (mem::load_system(&q->recovered) == next) {
          set_back(q);
        }
        resume(q);
      }
    }
    // Release: all of it, before the host or another thread sees the phase.
    mem::fence_system();
    mem::store_system(&r->state, seen + 2);
  }

 private:
  // Holds the service word, so that nobody rings or reaps, and refuses tickets. Returns when whoever has one has written its mark:
  // then nobody is at the rings or the marks. Holders and those with a ticket wait for nobody. False if told to stop.
  GPUNVME_FN static bool pause_queue(Queue* q, const u32* stop) {
    u64 word = mem::load(q->service_word());
    // Acquire: what the last holder has left. Without a pause: all who wait want the word, and it is unlocked for moments.
    GPUNVME_ROLLED
    for (u32 tries = 1; (word & service::kLocked) != 0 ||
                        mem::compare_exchange_acquire(q->service_word(), word, word | service::kLocked) != word;
         tries++) {
      if (tries % 64 == 0 && q->told_to_stop(stop)) {
        return false;
      }
      word = mem::load(q->service_word());
    }
    u32 tail = static_cast<u32>(mem::fetch_or(q->ticket_word(), ticket::kClosed));
    GPUNVME_ROLLED
    for (u32 p = service::rung(word); !service::same(p, tail);) {
      if (is_marked(q, p)) {
        p++;
      } else if (q->told_to_stop(stop)) {
        return false;
      } else {
        pause(40);
      }
    }
    return true;
  }

  GPUNVME_FN static bool is_marked(const Queue* q, u32 p) { return mem::load(q->marks + (p & q->sq_mask())) == service::mark(p); }

  // The first position that has no ticket, of a queue that is paused.
  GPUNVME_FN static u32 end(const Queue* q, u32 rung) {
    GPUNVME_ROLLED
    while (is_marked(q, rung)) {
      rung++;
    }
    return rung;
  }

  // To the words of a queue pair that is new at the controller. Positions go on from where both rings begin, so that no word that
  // somebody has seen before is taken for a new one.
  GPUNVME_FN static void set_back(Queue* q) {
    u32 back = 0;
    GPUNVME_ROLLED
    for (u32 at = 0; at < q->depth; at++) {
      u32 word = mem::load(q->slots + at);
      if (slot::state(word) == slot::kInFlight) {
        // Its owner's deadline may pass at this moment.
        u32 done = slot::done_word(slot::cid(word), status::kAbortedByHost);
        u32 old = mem::compare_exchange(q->slots + at, word, done);
        word = old == word ? done : old;
      }
      if (slot::state(word) == slot::kQuarantined) {
        mem::store(q->slots + at, slot::kFree | slot::cid(word));
        mem::or_release(q->free_slots + at / 32, 1u << at % 32);
        back++;
      }
    }
    mem::fetch_add(&q->quarantined, 0 - back);
    q->recovered_slots += back;
    u64 word = mem::load(q->service_word());
    u32 from = service::rung(word);
    u32 to = end(q, from);
    q->submitted += to - from;
    // Positions are skipped, so old marks would stay for more laps than marks tell apart.
    GPUNVME_ROLLED
    for (u32 i = 0; i <= q->sq_mask(); i++) {
      mem::store(q->marks + i, 0);
    }
    u32 laps = 2 * q->cq_mask() + 1;
    u32 head = (service::head(word) + laps) & ~laps;
    q->cq_rung = head;
    mem::exchange(q->service_word(), service::word((to + q->sq_mask()) & ~q->sq_mask(), head, false) | service::kLocked);
  }

  // The queue goes on. What was marked is announced first: whoever found the service word locked relies on that. Nothing is
  // marked before there are tickets again, so PENDING need not be looked at.
  GPUNVME_FN static void resume(Queue* q) {
    u64 word = mem::load(q->service_word());
    u32 from = service::rung(word);
    u32 to = end(q, from);
    // Acquire: the marks. Release: the SQEs before the doorbell.
    mem::fence_system();
    if (to != from) {
      q->store_doorbell(q->sq_doorbell, to & q->sq_mask());
      q->sq_doorbells++;
      q->submitted += to - from;
      // Release: the doorbell before that of the next holder.
      mem::fence_system();
    }
    mem::exchange(q->service_word(), service::word(to, service::head(word), (word & service::kWide) != 0));
    // Whoever was refused meanwhile has added to the ticket, too.
    mem::exchange(q->ticket_word(), static_cast<u64>(to));
  }
};

}  // namespace detail
}  // namespace gpunvme
