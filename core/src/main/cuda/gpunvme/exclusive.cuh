#pragma once
// A queue pair that one warp owns: the fastest way to run a known list of commands. Whole warps call; every lane of the
// warp takes part.
#include "queue.cuh"

namespace gpunvme {

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
// run() also ends, with the source not dry, when the host says stop, when every slot is quarantined, and at once if the queue
// is laid out for SharedQueue. What the source has not been asked for was not submitted.
//
// Pipelined: completions are taken while later commands are in flight, and the load that looks for completions
// travels while SQEs are written. One doorbell store announces everything written since the last. A command past
// the queue's timeout is quarantined: its slot stays taken until the completion arrives after all or the host has recovered
// the queue, and the sink is told kTimeout.
class ExclusiveQueue {
 public:
  // How many windows of a warp's width are written and looked at in one round: the fence and the look at the completion queue
  // cost the same for four as for one.
  static constexpr u32 kWindows = 4;

  GPUNVME_FN explicit ExclusiveQueue(Queue* queue)
      : q(queue),
        lane(warp::lane()),
        depth(queue->depth),
        slot_mask(queue->slot_mask()),
        sq_mask(queue->sq_mask()),
        cq_mask(queue->cq_mask()),
        sq(queue->sq),
        cq(queue->cq),
        cq_bits(queue->cq_bits),
        qid(queue->qid),
        slots(queue->slots),
        infos(queue->infos),
        free_slots(queue->free_slots),
        tail(queue->sq_tail),
        head(queue->cq_head),
        head_rung(queue->cq_rung),
        free_head(queue->free_head),
        free_tail(queue->free_tail),
        quarantined(queue->quarantined) {}

  // Commands that can be submitted now.
  GPUNVME_FN u32 room() const { return free_tail - free_head; }

  // Commands outstanding, the quarantined ones left out.
  GPUNVME_FN u32 in_flight() const { return depth - room() - quarantined; }

  template <class Source, class Sink>
  GPUNVME_FN void run(Source& source, Sink& sink) {
    bool more = !q->shared();
    if (!more) {
      return;
    }
    u32 idle = 0;
    u64 looked = nanos();
    // With every slot quarantined nothing more can be submitted: the rest is for the host, after it has recovered the queue.
    while ((more && quarantined < depth) || in_flight() > 0) {
      bool writing = more && (room() >= batch() || idle > 0) && room() > 0;
      bool looking = in_flight() + quarantined > 0;
      Pair cqe[kWindows];
      u32 cids[kWindows];
      if (writing) {
        if (looking) {
          look(cqe);  // travels while SQEs are written
        }
        next_cids(cids);
        time = detail::coarse(nanos());
        u32 written = 0;
        for (u32 i = 0; i < kWindows && more && room() > 0; i++) {
          written += submit(source, cids[i], more);
        }
        // One fence for both directions: the SQEs before the doorbell, and the CQEs before the data they vouch for.
        warp::sync(warp::kFull);
        mem::fence_system();
        if (written > 0) {
          ring();
          first_look.start(in_flight() <= kFew);
        }
      } else if (looking) {
        first_look.wait();
        cqe[0] = look_idle();
      }
      u32 taken = looking ? consume(cqe, writing ? kWindows : 1, sink) : 0;
      if (looking && !writing) {
        first_look.learn(taken != 0);
      }
      idle = taken == 0 ? idle + 1 : 0;
      if ((++rounds & kClockMask) == 0) {
        u64 now = warp::shuffle(warp::kFull, nanos(), 0);
        bool stop = warp::ballot(warp::kFull, lane == 0 && q->told_to_stop()) != 0;
        if (stop || now - looked >= q->timeout_ns / 8) {
          more = more && !stop;
          looked = now;
          trouble(sink, stop, now);
        }
      }
    }
  }

  // Leaves the queue to the next kernel, or to the host.
  GPUNVME_FN void close() {
    if (q->shared()) {
      return;
    }
    if (head != head_rung) {
      give_back();
    }
    warp::sync(warp::kFull);
    if (lane == 0) {
      q->sq_tail = tail;
      q->sq_rung = tail;
      q->free_head = free_head;
      q->free_tail = free_tail;
      q->cq_head = head;
      q->cq_rung = head_rung;
      q->quarantined = quarantined;
      q->submitted += submitted;
      q->completed += completed;
      q->sq_doorbells += sq_doorbells;
      q->cq_doorbells += cq_doorbells;
    }
    warp::sync(warp::kFull);
  }

 private:
  // With so few commands in flight latency is what counts.
  static constexpr u32 kFew = 4;

  // When to look for the first completion after a doorbell. A look at host memory takes over a microsecond, and one that
  // comes too early delays the next: so the first waits a little, learning from whether it was too early.
  class FirstLook {
   public:
    // A doorbell was stored; `few`: and little else is in flight.
    GPUNVME_FN void start(bool few) {
      due = few ? static_cast<u32>(nanos()) + delay : 0;
      waiting = few;
    }

    GPUNVME_FN void wait() const {
      // Left over more than kMost: the moment has passed.
      while (waiting && due - static_cast<u32>(nanos()) - 1 < kMost) {
      }
    }

    // The first look found something or did not.
    GPUNVME_FN void learn(bool found) {
      if (waiting) {
        u32 next = found ? delay - kEarlier : delay + kLater;
        delay = found && delay < kEarlier ? 0 : next > kMost ? kMost : next;
        waiting = false;
      }
    }

   private:
    static constexpr u32 kEarlier = 8;
    static constexpr u32 kLater = 128;
    static constexpr u32 kMost = 4000;  // slower controllers: a microsecond does not matter
    u32 delay = 0;
    u32 due = 0;
    bool waiting = false;
  };

  // Rounds between two looks at the clock and the stop word.
  static constexpr u32 kClockMask = 255;

  // Below this many free slots a busy queue waits for more, so that a doorbell announces several commands.
  GPUNVME_FN u32 batch() const {
    u32 most = warp::kWidth;
    return depth / 4 < 1 ? 1 : depth / 4 < most ? depth / 4 : most;
  }

  // ---- submission

  // The CIDs that the next submissions will have.
  GPUNVME_FN void next_cids(u32 (&cids)[kWindows]) const {
    for (u32 i = 0; i < kWindows; i++) {
      cids[i] = mem::load(free_slots + ((free_head + i * warp::kWidth + lane) & slot_mask));
    }
  }

  template <class Source>
  GPUNVME_FN u32 submit(Source& source, u32 cid, bool& more) {
    bool wanted = lane < room();
    Command c;
    bool got = source.take(wanted, c) && wanted;
    // The lanes that got a command are the lowest ones.
    u32 count = warp::popcount(warp::ballot(warp::kFull, got));
    more = count == warp::popcount(warp::ballot(warp::kFull, wanted));
    if (count == 0) {
      return 0;
    }
    if (got) {
      u32 at = cid & slot_mask;
      infos[at] = {c.slba, c.user, c.opcode | time << 8};
      mem::store(slots + at, slot::kInFlight | cid);
    }
    detail::write_sqes(q, sq, sq_mask, tail, count, c, cid);
    free_head += count;
    tail += count;
    submitted += count;
    return count;
  }

  GPUNVME_FN void ring() {
    warp::sync(warp::kFull);
    if (lane == 0) {
      q->store_doorbell(q->sq_doorbell, tail & sq_mask);
    }
    sq_doorbells++;
  }

  // ---- completion

  GPUNVME_FN const Pair* entry(u32 window) const {
    return reinterpret_cast<const Pair*>(&cq[(head + window * warp::kWidth + lane) & cq_mask].dw2);
  }

  // Starts the loads of the next entries; the controller is the other side.
  GPUNVME_FN void look(Pair (&cqe)[kWindows]) const {
    for (u32 i = 0; i < kWindows; i++) {
      cqe[i] = mem::load_system(entry(i));
    }
  }

  // One window when there is nothing to announce: no fence follows, so the loads acquire, and only entries that can be there
  // are read.
  GPUNVME_FN Pair look_idle() const {
    const Pair* next = entry(0);
    u32 not_yet = ((head + lane) >> cq_bits & 1) << 16;
    return lane < in_flight() + quarantined ? mem::load_system_acquire(next) : Pair{0, not_yet};
  }

  template <class Sink>
  GPUNVME_FN u32 consume(const Pair (&cqe)[kWindows], u32 windows, Sink& sink) {
    u32 run[kWindows];
    u32 words[kWindows];
    SlotInfo found[kWindows];
    u32 taken = 0;
    for (u32 i = 0; i < kWindows; i++) {
      run[i] = i < windows && taken == i * warp::kWidth ? arrived(cqe[i], head + i * warp::kWidth + lane) : 0;
      taken += run[i];
      if (lane < run[i]) {
        u32 cid = cqe_cid(cqe[i].y);
        u32 at = cid & slot_mask;
        // The exchange, not a load: of two completions of one command in one window only the first may find it in flight.
        words[i] = at < depth ? mem::compare_exchange(slots + at, slot::kInFlight | cid, slot::kFree | cid)
                              : static_cast<u32>(slot::kFree);
        found[i] = at < depth ? infos[at] : SlotInfo{0, 0, 0};
      }
    }
    for (u32 i = 0; i < kWindows && run[i] != 0; i++) {
      hand_over(lane < run[i], cqe_cid(cqe[i].y), cqe_status(cqe[i].y), words[i], found[i], sink);
    }
    head += taken;
    if (head - head_rung > cq_mask / 4) {
      give_back();
    }
    return taken;
  }

  // How many of a window's entries are there, counted up to the first that is not.
  GPUNVME_FN u32 arrived(const Pair& cqe, u32 position) {
    bool there = cqe_phase(cqe.y) == (~(position >> cq_bits) & 1);
    bool ours = cqe_sqid(cqe.x) == qid;
    u32 no = warp::ballot(warp::kFull, !(there && ours));
    u32 run = no == 0 ? warp::kWidth : warp::lowest(no);
    if (lane == run && there) {
      q->note_malformed(cqe.y);
    }
    return run;
  }

  template <class Sink>
  GPUNVME_FN void hand_over(bool valid, u32 cid, Status s, u32 word, const SlotInfo& info, Sink& sink) {
    bool over = valid && word == (slot::kInFlight | cid);
    bool was_late = valid && word == (slot::kQuarantined | cid) &&
                    mem::compare_exchange(slots + (cid & slot_mask), word, slot::kFree | cid) == word;
    u32 freed = warp::ballot(warp::kFull, over || was_late);
    if (over || was_late) {
      mem::store(free_slots + ((free_tail + warp::rank(freed)) & slot_mask), q->next_cid(cid));
    }
    free_tail += warp::popcount(freed);
    completed += warp::popcount(warp::ballot(warp::kFull, over));
    if (warp::ballot(warp::kFull, valid && (!over || failed(s))) != 0) {
      quarantined -= account(q, valid, over, was_late, cid, s);
    }
    warp::sync(warp::kFull);
    sink.done(over, info.user, info.slba, s);
  }

  // The uncommon: failures, and completions that end no command. Returns how many of the warp's were late ones. Not a member,
  // so that the queue's state can stay in registers.
  GPUNVME_NOINLINE static u32 account(Queue* q, bool valid, bool over, bool was_late, u32 cid, Status s) {
    bool known = valid && (cid & q->slot_mask()) < q->depth;
    bool failure = over && failed(s);
    bool unasked = known && !over && !was_late;
    if (failure) {
      mem::fetch_add(&q->failures, 1ull);
    } else if (was_late) {
      mem::fetch_add(&q->late, 1ull);
    } else if (unasked) {
      mem::fetch_add(&q->stale, 1ull);
    } else if (valid && !known) {
      mem::fetch_add(&q->unknown, 1ull);
    }
    if (valid && (!over || failed(s))) {
      u32 kind = over ? trouble::kStatus : was_late ? trouble::kLate : known ? trouble::kStale : trouble::kUnknown;
      q->report(kind, s, cid, known ? q->infos[cid & q->slot_mask()] : SlotInfo{0, 0, 0});
    }
    return warp::popcount(warp::ballot(warp::kFull, was_late));
  }

  // Gives consumed entries back to the controller. The fence of the round has ordered the loads before it.
  GPUNVME_FN void give_back() {
    warp::sync(warp::kFull);
    if (lane == 0) {
      q->store_doorbell(q->cq_doorbell, head & cq_mask);
    }
    head_rung = head;
    cq_doorbells++;
  }

  // ---- deadlines

  // Quarantines what has expired, or everything once the host says stop.
  template <class Sink>
  GPUNVME_FN void trouble(Sink& sink, bool stop, u64 now) {
    u64 units = (q->timeout_ns >> 20) + 1;
    u32 limit = units < 0x7FFFFF ? static_cast<u32>(units) : 0x7FFFFF;  // ages have 24 bits
    Status s = stop ? status::kStopped : status::kTimeout;
    for (u32 base = 0; base < depth; base += warp::kWidth) {
      SlotInfo info = {0, 0, 0};
      bool expired = expire(q, base + lane, stop, now, limit, s, info);
      u32 n = warp::popcount(warp::ballot(warp::kFull, expired));
      quarantined += n;
      warp::sync(warp::kFull);
      if (n != 0) {
        sink.done(expired, info.user, info.slba, s);
      }
    }
  }

  GPUNVME_FN static bool expire(Queue* q, u32 at, bool stop, u64 now, u32 limit, Status s, SlotInfo& info) {
    u32 word = at < q->depth ? mem::load(q->slots + at) : static_cast<u32>(slot::kFree);
    if (slot::state(word) != slot::kInFlight) {
      return false;
    }
    info = q->infos[at];
    u32 age = (detail::coarse(now) - (info.opcode_and_time >> 8)) & 0xFFFFFF;
    if (!stop && age <= limit) {
      return false;
    }
    mem::store(q->slots + at, slot::kQuarantined | slot::cid(word));
    mem::fetch_add(&q->timeouts, 1ull);
    q->report(trouble::kTimeout, s, slot::cid(word), info);
    return true;
  }

  // The fixed fields that every round needs stay in registers: each fence empties the L1 cache.
  Queue* const q;
  const u32 lane;
  const u32 depth;
  const u32 slot_mask;
  const u32 sq_mask;
  const u32 cq_mask;
  Sqe* const sq;
  Cqe* const cq;
  const u32 cq_bits;
  const u32 qid;
  u32* const slots;
  SlotInfo* const infos;
  u32* const free_slots;
  u32 tail;
  u32 head;
  u32 head_rung;
  u32 free_head;
  u32 free_tail;
  u32 quarantined;
  FirstLook first_look;
  u32 rounds = 0;
  u32 time = 0;  // of the round, for SlotInfo
  u64 submitted = 0;
  u64 completed = 0;
  u32 sq_doorbells = 0;
  u32 cq_doorbells = 0;
};

}  // namespace gpunvme
