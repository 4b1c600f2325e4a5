#pragma once
// A queue pair with one owner, who submits and completes without asking anybody: the algorithm that ExclusiveQueue (the owner
// is a warp) and BlockQueue (a block) have in common. How to use it is said there.
#include "queue.cuh"

namespace gpunvme {
namespace detail {

// What an owner's threads got from the source in one window.
struct Share {
  u32 total;   // all threads
  u32 before;  // the threads of the warps before this one
  u32 mine;    // this warp
};

// An Owner is the threads that drive a queue together:
//
//   thread()     this thread's number among them
//   first()      that of its warp's first thread
//   threads()    how many they are
//   sync()       brings them together, and orders the accesses of each before it with those of all after it
//   of_first(v)  the value of thread 0
//   share(got, wanted)   which threads of those that wanted one, `wanted` in number, got a command
//   arrived(run)  run[i] says how many entries of this warp's part of window i have arrived, counted up to the first that has
//                 not. Returns that of all windows together, and leaves in run[i] how many of these entries are this warp's
//   settle()     lets all know what the warps gave back and quarantined
//   free_tail, quarantined   as in struct Queue, as of the last settle()
//
// and each warp for itself, after arrived() or of_first() and before settle():
//
//   give_back(n)   makes n more CIDs free; returns the position of the first
//   quarantine(n)  quarantines n more slots, or -n fewer
//
// Where a block's threads go together is decided from what is the same in all of them, so that they meet at each barrier:
// threads(), and what of_first, share, arrived and settle tell.
template <class Owner>
class OwnedQueue {
 public:
  // How many windows of the owner's width are written and looked at in one round: the fence and the look at the completion
  // queue cost the same for four as for one.
  static constexpr u32 kWindows = Owner::kWindows;

  // Commands that can be submitted now.
  GPUNVME_FN u32 room() const { return owner.free_tail - free_head; }

  // Commands outstanding, the quarantined ones left out.
  GPUNVME_FN u32 in_flight() const { return depth - room() - owner.quarantined; }

  template <class Source, class Sink>
  GPUNVME_FN void run(Source& source, Sink& sink, u32 at_once = ~0u) {
    bool more = !q->shared();
    if (!more) {
      return;
    }
    u32 idle = 0;
    u64 looked = owner.of_first(nanos());
    // With every slot quarantined nothing more can be submitted: the rest is for the host, after it has recovered the queue.
    while ((more && owner.quarantined < depth) || in_flight() > 0) {
      bool writing = more && (room() >= batch() || idle > 0) && room() > 0;
      u32 outstanding = in_flight() + owner.quarantined;
      bool looking = outstanding > 0;
      Pair cqe[kWindows];
      u32 cids[kWindows];
      if (writing) {
        if (looking) {
          look(cqe, outstanding);  // travels while SQEs are written
        }
        next_cids(cids);
        time = coarse(nanos());
        u32 written = 0;
        for (u32 i = 0; i < kWindows && more && room() > 0 && written < at_once; i++) {
          written += submit(source, cids[i], at_once - written, more);
        }
        // One fence for both directions: the SQEs before the doorbell, and the CQEs before the data they vouch for.
        owner.sync();
        mem::fence_system();
        if (written > 0) {
          ring();
          first_look.start(in_flight() <= kFew);
        }
      } else if (looking) {
        first_look.wait();
        cqe[0] = look_idle(outstanding);
      }
      u32 taken = looking ? consume(cqe, writing ? kWindows : 1, sink) : 0;
      if (looking && !writing) {
        first_look.learn(taken != 0);
      }
      idle = taken == 0 ? idle + 1 : 0;
      if ((++rounds & kClockMask) == 0) {
        bool stop = owner.of_first(owner.thread() == 0 && q->told_to_stop() ? 1u : 0u) != 0;
        u64 now = owner.of_first(nanos());
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
    owner.sync();
    if (warp::lane() == 0) {
      mem::fetch_add(&q->completed, completed);
    }
    if (owner.thread() == 0) {
      q->sq_tail = tail;
      q->sq_rung = tail;
      q->free_head = free_head;
      q->free_tail = owner.free_tail;
      q->cq_head = head;
      q->cq_rung = head_rung;
      q->quarantined = owner.quarantined;
      q->submitted += submitted;
      q->sq_doorbells += sq_doorbells;
      q->cq_doorbells += cq_doorbells;
    }
    owner.sync();
  }

 protected:
  GPUNVME_FN OwnedQueue(Queue* queue, const Owner& who)
      : q(queue),
        owner(who),
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
        free_head(queue->free_head) {}

 private:
  // With so few commands in flight latency is what counts.
  static constexpr u32 kFew = 4;

  // Rounds between two looks at the clock and the stop word.
  static constexpr u32 kClockMask = 255;

  // Below this many free slots a busy queue waits for more, so that a doorbell announces several commands.
  GPUNVME_FN u32 batch() const {
    u32 most = owner.threads();
    return depth / 4 < 1 ? 1 : depth / 4 < most ? depth / 4 : most;
  }

  // ---- submission

  // The CIDs that the next submissions will have.
  GPUNVME_FN void next_cids(u32 (&cids)[kWindows]) const {
    for (u32 i = 0; i < kWindows; i++) {
      cids[i] = next_cid(i * owner.threads() + owner.thread());
    }
  }

  GPUNVME_FN u32 next_cid(u32 ahead) const { return mem::load(free_slots + ((free_head + ahead) & slot_mask)); }

  template <class Source>
  GPUNVME_FN u32 submit(Source& source, u32 cid, u32 most, bool& more) {
    u32 wanted = room() < owner.threads() ? room() : owner.threads();
    wanted = most < wanted ? most : wanted;
    Command c;
    bool got = source.take(owner.thread() < wanted, c) && owner.thread() < wanted;
    // The lanes of a warp that got a command are its lowest ones.
    Share share = owner.share(got, wanted);
    more = share.total == wanted;
    if (share.total == 0) {
      return 0;
    }
    if (share.before != owner.first()) {
      cid = next_cid(share.before + warp::lane());  // a warp before this one got fewer than it wanted
    }
    if (got) {
      u32 at = cid & slot_mask;
      infos[at] = {c.slba, c.user, c.opcode | time << 8};
      mem::store(slots + at, slot::kInFlight | cid);
    }
    write_sqes<4>(q, sq, sq_mask, tail + share.before, share.mine, c, cid);
    free_head += share.total;
    tail += share.total;
    submitted += share.total;
    return share.total;
  }

  GPUNVME_FN void ring() {
    owner.sync();
    if (owner.thread() == 0) {
      q->store_doorbell(q->sq_doorbell, tail & sq_mask);
    }
    sq_doorbells++;
  }

  // ---- completion

  GPUNVME_FN u32 position(u32 window) const { return head + window * owner.threads() + owner.thread(); }

  GPUNVME_FN const Pair* entry(u32 window) const {
    return reinterpret_cast<const Pair*>(&cq[position(window) & cq_mask].dw2);
  }

  // What an entry looks like that has not arrived.
  GPUNVME_FN Pair not_yet(u32 window) const { return {0, (position(window) >> cq_bits & 1) << 16}; }

  // Starts the loads of the next entries; the controller is the other side.
  GPUNVME_FN void look(Pair (&cqe)[kWindows], u32 outstanding) const {
    for (u32 i = 0; i < kWindows; i++) {
      bool possible = Owner::kOneWarp || i * owner.threads() + owner.thread() < outstanding;
      cqe[i] = possible ? mem::load_system(entry(i)) : not_yet(i);
    }
  }

  // One window when there is nothing to announce: no fence follows, so the loads acquire, and only entries that can be there
  // are read.
  GPUNVME_FN Pair look_idle(u32 outstanding) const {
    return owner.thread() < outstanding ? mem::load_system_acquire(entry(0)) : not_yet(0);
  }

  template <class Sink>
  GPUNVME_FN u32 consume(const Pair (&cqe)[kWindows], u32 windows, Sink& sink) {
    u32 run[kWindows];
    u32 words[kWindows];
    SlotInfo found[kWindows];
    u32 mine = 0;
    for (u32 i = 0; i < kWindows; i++) {
      bool worth = i < windows && (!Owner::kOneWarp || mine == i * warp::kWidth);
      run[i] = worth ? arrived(cqe[i], position(i)) : 0;
      mine += run[i];
    }
    u32 taken = owner.arrived(run, windows);
    u32 lane = warp::lane();
    for (u32 i = 0; i < kWindows; i++) {
      if (lane < run[i]) {
        u32 cid = cqe_cid(cqe[i].y);
        u32 at = cid & slot_mask;
        // The exchange, not a load: of two completions of one command only the first may find it in flight.
        words[i] = at < depth ? mem::compare_exchange(slots + at, slot::kInFlight | cid, slot::kFree | cid)
                              : static_cast<u32>(slot::kFree);
        found[i] = at < depth ? infos[at] : SlotInfo{0, 0, 0};
      }
    }
    for (u32 i = 0; i < kWindows && run[i] != 0; i++) {
      hand_over(lane < run[i], cqe_cid(cqe[i].y), cqe_status(cqe[i].y), words[i], found[i], sink);
    }
    head += taken;
    if (taken != 0) {
      owner.settle();
    }
    if (head - head_rung > cq_mask / 4) {
      give_back();
    }
    return taken;
  }

  // How many of a warp's part of a window are there, counted up to the first that is not.
  GPUNVME_FN u32 arrived(const Pair& cqe, u32 position) {
    bool there = cqe_phase(cqe.y) == (~(position >> cq_bits) & 1);
    bool ours = cqe_sqid(cqe.x) == qid;
    u32 no = warp::ballot(warp::kFull, !(there && ours));
    u32 run = no == 0 ? warp::kWidth : warp::lowest(no);
    if (warp::lane() == run && there) {
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
    u32 first = owner.give_back(warp::popcount(freed));
    if (over || was_late) {
      mem::store(free_slots + ((first + warp::rank(freed)) & slot_mask), q->next_cid(cid));
    }
    completed += warp::popcount(warp::ballot(warp::kFull, over));
    if (warp::ballot(warp::kFull, valid && (!over || failed(s))) != 0) {
      owner.quarantine(0 - account(q, valid, over, was_late, cid, s));
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

  // Gives consumed entries back to the controller. The fence of the round has ordered the loads before it; those of other warps
  // ended before arrived() could tell of them.
  GPUNVME_FN void give_back() {
    warp::sync(warp::kFull);
    if (owner.thread() == 0) {
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
    for (u32 base = 0; base < depth; base += owner.threads()) {
      SlotInfo info = {0, 0, 0};
      bool expired = expire(q, base + owner.thread(), stop, now, limit, s, info);
      u32 n = warp::popcount(warp::ballot(warp::kFull, expired));
      owner.quarantine(n);
      warp::sync(warp::kFull);
      if (n != 0) {
        sink.done(expired, info.user, info.slba, s);
      }
    }
    owner.settle();
  }

  GPUNVME_FN static bool expire(Queue* q, u32 at, bool stop, u64 now, u32 limit, Status s, SlotInfo& info) {
    u32 word = at < q->depth ? mem::load(q->slots + at) : static_cast<u32>(slot::kFree);
    if (slot::state(word) != slot::kInFlight) {
      return false;
    }
    info = q->infos[at];
    u32 age = (coarse(now) - (info.opcode_and_time >> 8)) & 0xFFFFFF;
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
  Owner owner;
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
  FirstLook first_look;
  u32 rounds = 0;
  u32 time = 0;  // of the round, for SlotInfo
  u64 submitted = 0;
  u64 completed = 0;  // by this warp
  u32 sq_doorbells = 0;
  u32 cq_doorbells = 0;
};

}  // namespace detail
}  // namespace gpunvme
