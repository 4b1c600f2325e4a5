#pragma once
// A queue pair for any number of threads: each submits its own command and waits for its own result. Of a SharedQueue nobody
// serves the queue for the others all the time; whoever waits may, for a moment. Of a ServedQueue warps that do nothing else
// serve it (server.cuh).
//
// docs/shared-queue.md has the protocol with its proof by exhaustion; names here are names there.
#include "recovery.cuh"

namespace gpunvme {

// A token as plain memory, in which it gets from one thread to another.
struct ParkedToken {
  Queue* queue;
  u32 command;  // 0: none
};

// A command that was submitted and not yet waited for. It can be moved and not copied: once its slot is given back, a copy
// could end the slot's next command for somebody else.
class Token {
 public:
  GPUNVME_FN Token() {}
  GPUNVME_FN Token(Token&& from) : q(from.q), cid(from.cid) { from.cid = 0; }
  GPUNVME_FN Token& operator=(Token&& from) {
    u32 taken = from.cid;
    from.cid = 0;
    q = from.q;
    cid = taken;
    return *this;
  }
  Token(const Token&) = delete;
  Token& operator=(const Token&) = delete;

  GPUNVME_FN bool valid() const { return cid != 0; }

  // Whose waits take it.
  GPUNVME_FN Queue* queue() const { return q; }

  // Puts the token into memory from which any thread may adopt it; this one is not valid any more. Whoever adopts must see that
  // it was parked: a barrier, or a flag that is released and acquired, comes between.
  GPUNVME_FN void park(ParkedToken& place) {
    place = {q, cid};
    cid = 0;
  }

  // Takes a token out of memory, once: of two threads that adopt the same one at the same time both would wait for it.
  GPUNVME_FN static Token adopt(ParkedToken& place) {
    Token token;
    token.q = place.queue;
    token.cid = place.command;
    place.command = 0;
    return token;
  }

 private:
  template <bool>
  friend class CallersQueue;

  Queue* q = nullptr;
  u32 cid = 0;  // as CallersQueue hands commands on: with kValid above it
};

// Any thread may call at any time, whole warps and diverged ones. The lanes that call together for the same queue form a group
// and share the work; a warp's groups go on independently.
//
// Waits end at the queue's timeout or when the host says stop, whichever comes first; those for a slot at once if all slots
// are quarantined. A caller holds at most what it has submitted: a lane that finds no free slot never keeps others from
// theirs. Commands submitted by submit() and not waited for keep their slots: more than `depth` of them by threads that do not
// wait end in kBusy.
//
// kHelps: callers that wait serve the queue, too. Others carry none of that in their registers, and depend on the warps that
// serve; without such warps their waits end at the deadline.
template <bool kHelps>
class CallersQueue {
 public:
  // `stop`: the word that ends the waits of this kernel, the same for all its threads; null: the queue's own.
  GPUNVME_FN explicit CallersQueue(Queue* queue, const u32* stop = nullptr) : q(queue), own_stop(stop) {}

  // Runs one command of this thread and returns its status. A command that the host's recovery of the queue ends is submitted
  // once more; whatever failure is returned then, it may have been carried out the first time.
  GPUNVME_FN Status execute(const Command& c) {
    u32 last;
    return execute(c, last);
  }

  // As execute(c). `last`: what is_over() takes, of the command that was submitted last; 0 if none was.
  GPUNVME_FN Status execute(const Command& c, u32& last) {
    last = 0;
    u32 group = callers();
    Status result = admit(group);
    bool needs = !failed(result);
    Patience patience(*this);
    GPUNVME_ROLLED
    while (warp::ballot(group, needs) != 0) {
      u32 cid = 0;
      u32 mark = 0;
      if (start(group, needs, c, cid, mark) != 0) {
        // Lanes that got no slot wait for those that did: a finished command must never wait for a slot, or groups could
        // hold each other's.
        Status s = await(group, cid, mark);
        if (has(cid)) {
          needs = s == status::kAbortedByHost && result != s;
          result = s;
          last = cid;
        }
      } else if (patience.over(group, serve(group), true)) {
        // Not kBusy for a command that was submitted before.
        bool fresh = needs && result != status::kAbortedByHost;
        result = fresh ? patience.stopped() ? status::kStopped : status::kBusy : result;
        needs = false;
      }
    }
    return result;
  }

  GPUNVME_FN Queue* pair() const { return q; }

  // Whether a command that ended with kTimeout or kStopped moves no more data: its completion has come after all, or the queue
  // pair was made anew. `last`: of execute(), and not 0.
  GPUNVME_FN static bool is_over(Queue* q, u32 last) {
    bool over = mem::load(q->slots + (last & q->slot_mask())) != (slot::kQuarantined | (last & 0xFFFF));
    // Acquire: whoever took the late completion, or the host, had seen the data in place.
    mem::fence_system();
    return over;
  }

  // Submits one command and returns when the controller has been told of it or is just being told; where others serve, they
  // tell it. kSuccess: `token` is valid, and somebody must wait for it or test it to its end; c's data belongs to the controller
  // until then. A token that is still valid before is lost, and its slot with it.
  GPUNVME_FN Status submit(const Command& c, Token& token) {
    u32 group = callers();
    name(token, 0);
    Status result = admit(group);
    bool needs = !failed(result);
    Patience patience(*this);
    GPUNVME_ROLLED
    while (warp::ballot(group, needs) != 0) {
      u32 mark = 0;
      if (start(group, needs, c, token.cid, mark) != 0) {
        needs = needs && !token.valid();
        tell(group, mark);
      } else if (patience.over(group, serve(group), true)) {
        result = needs ? patience.stopped() ? status::kStopped : status::kBusy : result;
        needs = false;
      }
    }
    return result;
  }

  // As submit(), but kBusy at once if no slot is free. For callers that hold slots and must not wait for another.
  GPUNVME_FN Status try_submit(const Command& c, Token& token) {
    u32 group = callers();
    name(token, 0);
    Status result = admit(group);
    bool needs = !failed(result);
    u32 mark = 0;
    if (warp::ballot(group, needs) != 0 && start(group, needs, c, token.cid, mark) != 0) {
      tell(group, mark);
    }
    return needs && !token.valid() ? static_cast<Status>(status::kBusy) : result;
  }

  // The status of a submitted command, once it is over. kStopped also if the host has recovered the queue since; kArgument
  // for a token of another queue, which stays valid, and for one that is not valid.
  GPUNVME_FN Status wait(Token& token) {
    bool ours = token.q == q;
    Status result = await(callers(), ours ? token.cid : 0);
    token.cid = ours ? 0 : token.cid;
    return result;
  }

  // As wait(), but kPending at once if the command is not over; the token stays valid then. Whoever calls again and again helps
  // to serve like one that waits. It ends a command when the host says stop, and never for its age: a loop that must end by itself
  // goes over to a wait.
  GPUNVME_FN Status test(Token& token) {
    u32 group = callers();
    bool ours = token.q == q;
    u32 command = ours ? token.cid : 0;
    u32 cid = command & 0xFFFF;
    bool waiting = has(command);
    Status result = status::kArgument;
    if (waiting && look(cid, result)) {
      waiting = false;
    }
    if (warp::ballot(group, waiting) != 0) {
      serve(group);
      bool stop = is_stopped(group);
      if (waiting && look(cid, result)) {
        waiting = false;
      } else if (waiting && stop) {
        result = give_up(q, cid, true);
        waiting = false;
      }
    }
    result = waiting ? static_cast<Status>(status::kPending) : result;
    finish(group, waiting ? 0 : command, cid, result);
    token.cid = ours && !waiting ? 0 : token.cid;
    return result;
  }

  // Waits for whichever of these commands is over first, and takes it: its status, and in `which` its number. Tokens that are
  // not valid are passed over; kArgument if none is valid, or one is another queue's. At the deadline, which counts from the
  // call, and at the host's stop the first of those left is given up.
  GPUNVME_FN Status wait_any(Token* tokens, u32 count, u32& which) {
    u32 group = callers();
    Status result = status::kArgument;
    u32 first = count;
    bool ours = true;
    GPUNVME_ROLLED
    for (u32 i = count; i-- != 0;) {
      ours = ours && (!tokens[i].valid() || tokens[i].q == q);
      first = tokens[i].valid() ? i : first;
    }
    bool waiting = ours && first < count;
    bool mine = waiting;
    u32 chosen = waiting ? first : count;
    Patience patience(*this);
    GPUNVME_ROLLED
    for (;;) {
      GPUNVME_ROLLED
      for (u32 i = first; waiting && i < count; i++) {
        if (tokens[i].valid() && look(tokens[i].cid & 0xFFFF, result)) {
          chosen = i;
          waiting = false;
        }
      }
      if (warp::ballot(group, waiting) == 0) {
        break;
      }
      if (patience.over(group, serve(group))) {
        if (waiting) {
          result = give_up(q, tokens[first].cid & 0xFFFF, patience.stopped());
        }
        break;
      }
    }
    u32 command = mine ? tokens[chosen].cid : 0;
    finish(group, command, command & 0xFFFF, result);
    if (mine) {
      tokens[chosen].cid = 0;
      which = chosen;
    }
    return result;
  }

  // The number of the last recovery in which this queue pair was made anew while kernels ran. A command that ended with kTimeout or
  // kStopped in an earlier epoch moves no more data. 0 where there was none. To look at it helps nobody: recoveries go on by
  // calls that submit or wait.
  GPUNVME_FN u32 epoch() const {
    u32 number = mem::load_system(&q->recovered);
    // Acquire: the queue pair was gone before the host wrote this.
    mem::fence_system();
    return number;
  }

  // One turn at serving, by threads that wait for something else than a command of theirs; true if it was theirs. Nothing
  // happens where others serve.
  GPUNVME_FN bool poll() { return kHelps && q->shared() && serve(callers()); }

  // Waits until every command of this queue pair that was in flight at the call is over, whoever submitted it. Their owners still
  // have to take their results. What they have read is there for this thread if nobody has taken the result meanwhile; else
  // its owner and this thread have to meet. Quarantined commands count as over. kTimeout if one is not over at the deadline,
  // which counts from the call: nothing is given up.
  GPUNVME_FN Status quiet() {
    u32 group = callers();
    if (!q->shared()) {
      return status::kArgument;
    }
    Patience patience(*this);
    GPUNVME_ROLLED
    for (u32 base = 0; base < q->depth; base += warp::popcount(group)) {
      u32 at = base + warp::rank(group);
      u32 word = at < q->depth ? mem::load(q->slots + at) : static_cast<u32>(slot::kFree);
      bool waiting = slot::state(word) == slot::kInFlight;
      while (warp::ballot(group, waiting) != 0) {
        if (patience.over(group, serve(group))) {
          return patience.stopped() ? static_cast<Status>(status::kStopped) : static_cast<Status>(status::kTimeout);
        }
        waiting = waiting && mem::load(q->slots + at) == word;
      }
    }
    // Acquire: whoever handed the completions out had seen the data in place.
    mem::fence_gpu();
    warp::sync(group);
    return status::kSuccess;
  }

 private:
  // Commands are handed on as their CID with kValid above it; 0 is none.
  static constexpr u32 kValid = 1u << 16;

  GPUNVME_FN static bool has(u32 command) { return (command & kValid) != 0; }

  GPUNVME_FN void name(Token& token, u32 cid) const {
    token.q = q;
    token.cid = cid;
  }

  // Bounds a wait without asking the clock every time round.
  class Patience {
   public:
    GPUNVME_FN explicit Patience(const CallersQueue& queue) : q(queue.q), own_stop(queue.own_stop) {}

    // Gives way for a while, unless the caller was busy; true once the deadline has passed or the host says stop. The group
    // decides together. The deadline counts from the first look at the clock, a few microseconds after the start. Who waits for
    // a slot waits in vain, too, if all slots are quarantined: others have waited for each, and what is late is taken by then.
    GPUNVME_FN bool over(u32 group, bool busy, bool for_slot = false) {
      tries++;
      if (!busy) {
        pause(tries < 4 ? 40 : 120);
      }
      if ((tries & 31) != 0) {
        return false;
      }
      u32 now = static_cast<u32>(nanos() >> 10);
      if (tries == 32) {
        end = now + static_cast<u32>(q->timeout_ns >> 10);
      }
      bool leader = warp::lane() == warp::lowest(group);
      halted = heed(q, own_stop, group);
      // Where the host recovers, slots come back.
      bool lost = for_slot && mem::load(&q->quarantined) == q->depth && q->recovery == nullptr;
      bool vain = static_cast<int>(now - end) >= 0 || lost;
      return halted || warp::ballot(group, leader && vain) != 0;
    }

    GPUNVME_FN bool stopped() const { return halted; }

   private:
    Queue* const q;
    const u32* const own_stop;
    u32 end = 0;
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

  // A turn at serving; `own` and `mark` of a command that this lane waits for and has just written.
  GPUNVME_FN bool serve(u32 group) const { return kHelps && Service::serve(q, group, 0, 0).had; }

  // ---- submission

  // Whether anything may be submitted: kSuccess, kStopped or kArgument. Without this a caller whose commands all complete
  // quickly would never look at the stop word.
  GPUNVME_FN Status admit(u32 group) const {
    if (!q->shared()) {
      return status::kArgument;
    }
    return is_stopped(group) ? static_cast<Status>(status::kStopped) : static_cast<Status>(status::kSuccess);
  }

  GPUNVME_FN bool is_stopped(u32 group) const { return heed(q, own_stop, group); }

  // Whether the stop word says stop. Callers that help do what else it asks for.
  GPUNVME_FN static bool heed(Queue* q, const u32* own_stop, u32 group) {
    // Callers that do not help: one load for all lanes, none of which goes its own way.
    u32 said = !kHelps || warp::lane() == warp::lowest(group) ? q->told(own_stop) : 0;
    if (kHelps) {
      if (warp::ballot(group, said != 0) == 0) {
        return false;
      }
      if (said == told::kRecover) {
        detail::Recoverer::step(q->recovery, own_stop);
      }
      warp::sync(group);
    }
    return warp::ballot(group, (said & told::kStop) != 0) != 0;
  }

  // Submits for as many of the lanes in need as there are slots. Returns which. `mark`: what announces this lane's command.
  GPUNVME_FN u32 start(u32 group, bool needs, const Command& c, u32& cid, u32& mark) {
    u32 s = take_slot(group, needs);
    bool got = s != kNone;
    u32 takers = warp::ballot(group, got);
    return takers != 0 ? publish(group, takers, got, s, c, cid, mark) : 0;
  }

  static constexpr u32 kNone = ~0u;

  // One free slot for each lane that needs one, as far as they reach; kNone for the others. A warp starts looking at a word
  // of its own, which it mostly finds as full as it left it: its place tells which, as callers of one queue may well have numbers
  // with the same remainder.
  GPUNVME_FN u32 take_slot(u32 group, bool needs) {
    u32 wanting = warp::ballot(group, needs);
    u32 rank = warp::rank(wanting);
    u32 words = (q->depth + 31) / 32;
    u32 at = static_cast<u32>(static_cast<u64>(warp::place() * 0x9E3779B1u) * words >> 32);
    u32 result = kNone;
    u32 want = warp::popcount(wanting);
    u32 leader = warp::lowest(group);
    GPUNVME_ROLLED
    for (u32 probe = 0; probe < words && want != 0; probe++) {
      u32 bits = 0;
      if (warp::lane() == leader) {
        u32* word = q->free_slots + at;
        bool one = kHelps && want == 1;
        u32 chosen = one ? 1u << (warp::place() / words & 31) : choose(word, want);
        // Acquire: the last owner of a slot was done with it before it set the bit.
        u32 old = chosen == 0 ? 0 : mem::fetch_and_acquire(word, ~chosen);
        bits = old & chosen;
        // One slot: the first try is a guess, which is mostly right and saves a load. Served callers have no room for it.
        if (one && bits == 0 && old != 0) {
          chosen = old & (0 - old);
          bits = mem::fetch_and_acquire(word, ~chosen) & chosen;
        }
      }
      bits = warp::shuffle(group, bits, leader);
      u32 n = warp::popcount(bits);
      if (needs && rank < n) {
        result = at * 32 + warp::nth(bits, rank);
      }
      // Of a lane that has one it is beyond all others from here on.
      rank -= n;
      want -= n;
      at = at + 1 == words ? 0 : at + 1;
    }
    // What the leader has acquired, for all lanes: a shuffle orders no memory.
    warp::sync(group);
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
    GPUNVME_ROLLED
    for (u32 i = 0; i < n; i++) {
      chosen |= open & (0 - open);
      open &= open - 1;
    }
    return chosen;
  }

  // Writes the SQEs of the lanes that got a slot and marks them as written. Between the ticket and the mark there is
  // no wait and no way out: an unmarked position would hold up everybody behind it. Returns the takers; none if there are no
  // tickets now, and then their slots are free again.
  GPUNVME_FN u32 publish(u32 group, u32 takers, bool got, u32 s, const Command& c, u32& command, u32& mark) {
    u32 leader = warp::lowest(group);
    u32 count = warp::popcount(takers);
    u32 first = 0;
    u32 was = got ? mem::load(q->slots + s) : 0;  // travels with the ticket
    if (warp::lane() == leader) {
      first = ticket::first(mem::fetch_add(q->ticket_word(), static_cast<u64>(count)));
    }
    first = warp::shuffle(group, first, leader);
    if ((first & ticket::kRefused) != 0) {
      refused(q, group, got, s);
      takers = 0;
      got = false;
    }
    u32 cid = 0;
    if (got) {
      cid = q->next_cid(slot::cid(was));
      q->infos[s] = {c.slba, c.user, c.opcode};
      mem::store(q->slots + s, slot::kInFlight | cid);
    }
    u32 position = first + warp::rank(takers);
    if (takers == warp::kFull) {
      detail::write_sqes<1>(q, q->sq, q->sq_mask(), first, warp::kWidth, c, cid);
    } else if (got) {
      detail::write_sqe(q, position, c, cid);
    }
    warp::sync(group);
    // Release, system scope: the controller reads the SQE once the doorbell says so.
    mem::fence_system();
    if (got) {
      mark = service::mark(position);
      mem::store(q->marks + (position & q->sq_mask()), mark);
      command = kValid | cid;
    }
    return takers;
  }

  // The slots are free again.
  GPUNVME_FN static void refused(Queue* q, u32 group, bool got, u32 s) {
    // Release: the slots' words were read.
    warp::sync(group);
    if (got) {
      mem::or_release(q->free_slots + s / 32, 1u << s % 32);
    }
  }

  // Makes sure that somebody announces what this group has marked: the group itself, or whoever holds the service word and
  // will find it pending, or whoever takes it before this group does and scans after these marks. Warps that only serve look
  // at the marks anyway.
  GPUNVME_FN void tell(u32 group, u32 mark) {
    if (!kHelps) {
      return;
    }
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
      Service::hold(q, group, word, 0, mark);
    }
  }

  // ---- the end of a command

  // Waits until the commands of all lanes that have one are over; the other lanes of the group help to serve. `mark` of a command
  // that was just written, and need not be looked at before somebody has announced it; else 0.
  GPUNVME_FN Status await(u32 group, u32 command, u32 mark = 0) {
    u32 cid = command & 0xFFFF;
    bool waiting = has(command);
    Status result = status::kArgument;
    bool seen = false;
    Patience patience(*this);
    GPUNVME_ROLLED
    for (;;) {
      if (waiting && (!kHelps || mark == 0) && look(cid, result)) {
        waiting = false;
      }
      if (warp::ballot(group, waiting) == 0) {
        break;
      }
      Service::Turn turn = {false, status::kPending};
      if (kHelps) {
        turn = Service::serve(q, group, waiting ? command : 0, mark);
        if (turn.own != status::kPending) {
          result = turn.own;
          seen = true;
          break;
        }
      }
      if (patience.over(group, turn.had)) {
        if (waiting) {
          result = give_up(q, cid, patience.stopped());
        }
        break;
      }
      mark = 0;
    }
    finish(group, command, cid, result, seen);
    return result;
  }

  // Whether a command is over, and with which status.
  GPUNVME_FN bool look(u32 cid, Status& result) const {
    u32 seen = mem::load(q->slots + (cid & q->slot_mask()));
    if (seen == (slot::kInFlight | cid)) {
      return false;
    }
    result = outcome(seen, cid);
    return true;
  }

  // What a slot's word says of the command `cid`. Another command's word: the host has recovered the queue meanwhile.
  GPUNVME_FN static Status outcome(u32 word, u32 cid) {
    return slot::done(word) && slot::cid(word) == cid ? slot::status(word) : static_cast<Status>(status::kStopped);
  }

  // At the deadline: the command's fate is unknown, unless it was completed this very moment.
  GPUNVME_NOINLINE static Status give_up(Queue* q, u32 cid, bool stopped) {
    u32* word = q->slots + (cid & q->slot_mask());
    // Before the exchange: after it a late completion may give the slot to somebody else at any moment.
    SlotInfo info = q->infos[cid & q->slot_mask()];
    u32 old = mem::compare_exchange(word, slot::kInFlight | cid, slot::kQuarantined | cid);
    if (old != (slot::kInFlight | cid)) {
      return outcome(old, cid);
    }
    // After it: for a moment fewer may be counted than there are, and never more, so that callers do not give up too early.
    mem::fetch_add(&q->quarantined, 1u);
    Status s = stopped ? status::kStopped : status::kTimeout;
    mem::fetch_add(&q->timeouts, 1ull);
    q->report(trouble::kTimeout, s, cid, info);
    return s;
  }

  // Frees the slots of the commands that are over; quarantined ones stay taken. `acquired`: this lane has seen the completion itself.
  GPUNVME_FN void finish(u32 group, u32 command, u32 cid, Status result, bool acquired = false) {
    u32 at = cid & q->slot_mask();
    bool over = has(command) && (result & status::kMade) == 0;
    if (over) {
      if (!acquired) {
        // Acquire: whoever handed the completion out had seen the data in place.
        mem::load_acquire(q->slots + at);
      }
      if (failed(result)) {
        note_failure(q, cid, result);
      }
    }
    release(group, over, at);
    u32 count = warp::popcount(warp::ballot(group, over));
    if (count != 0 && warp::lane() == warp::lowest(group)) {
      mem::fetch_add(&q->completed, static_cast<u64>(count));
    }
  }

  GPUNVME_NOINLINE static void note_failure(Queue* q, u32 cid, Status s) {
    mem::fetch_add(&q->failures, 1ull);
    q->report(trouble::kStatus, s, cid, q->infos[cid & q->slot_mask()]);
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
  const u32* const own_stop;
};

using SharedQueue = CallersQueue<true>;
using ServedQueue = CallersQueue<false>;

}  // namespace gpunvme
