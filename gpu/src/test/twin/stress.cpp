// Drives queues of the device library from many threads against a controller that answers out of order, twice, late or not at
// all, and checks that every command arrives once and every caller gets its own result.
//
//   stress seconds SECONDS [SEED]    rounds of random shapes, with and without faults, for about this long
//   stress commands COMMANDS [SEED]  as many commands as that, without faults
//
// Exits with 0 if nothing was wrong. Built with sanitizers by test.d/twin.sh.
#include "callers.h"
#include "rounds.h"

namespace {

using namespace twin;

struct Shape {
  bool shared;
  u32 servers;     // threads that serve each shared queue; 0: the callers do
  u32 queues;
  u32 threads;
  u32 warps;       // of the block that each thread stands for; 0: no block
  u32 depth;
  u32 bunch;       // commands that a thread has in flight at most
  u64 commands;    // of each thread
  u64 timeout_ns;
  u32 start;       // position from which the rings count
  bool stop;       // the host says stop in the middle
  bool recover;    // the host recovers queues all the time
  Faults faults;
  const char* name;
};

// Makes the queue look at what has arrived since its callers left. False if it cannot: an exclusive queue with nothing but
// quarantined slots is for the host to recover.
bool drain(Queue& q, Responder& responder, u32 start, bool shared, Works& works, Seen& seen) {
  u64 end = nanos() + kForever;
  while (nanos() < end) {
    if (!shared && q.quarantined == q.depth) {
      return false;
    }
    Exchange none;
    Seen one = shared ? SharedCaller<SharedQueue>(&q, none, works, 1).run(1, 1) : ExclusiveCaller(&q, works, 1).run();
    seen.add(one);
    u32 head = shared ? service::head(mem::load(q.service_word())) : q.cq_head;
    // When this command was answered the controller had seen all earlier ones.
    // Positions go on from a multiple of the ring's double length when a queue pair is made anew.
    u32 apart = head - start - responder.posted();
    if (one.completed == 1 && responder.settled() && (shared ? apart & (2 * q.cq_mask() + 1) : apart) == 0) {
      return true;
    }
  }
  violation("completions that nobody takes", q.cq_head, responder.posted());
  return true;
}

// What is counted must be what was seen on both sides.
void check_counters(QueueMemory& memory, Responder& r, const Seen& seen, bool on_time) {
  Queue& q = memory.queue();
  check("submitted, by the queue and the callers", q.submitted, seen.submitted);
  check("commands sent and fetched", q.submitted, r.fetched());
  check("tickets and commands", q.sq_tail - memory.start(), static_cast<u32>(r.fetched()));
  check("completed", q.completed, seen.completed);
  check("failures", q.failures, seen.failures);
  check("timeouts", q.timeouts, seen.timeouts + seen.stopped);
  check("completions, by what became of them", q.completed + q.late + q.stale + q.unknown, r.posted());
  check("quarantined slots", q.quarantined, q.timeouts - q.late);
  check("slots", memory.free_count() + q.quarantined, q.depth);
  u64 malformed = q.malformed != 0 ? 1 : 0;  // only the first is told
  if (on_time) {
    check("commands that expired though all are answered at once", q.timeouts, 0);
    check("malformed completions that nobody made", q.malformed, 0);
  }
  check("errors told", memory.errors(), q.failures + q.timeouts + q.late + q.stale + q.unknown + malformed);
}

// `stop` in a shape: commands that were never submitted count as stopped too, so only what holds then is checked.
void check_stopped(QueueMemory& memory, Responder& r, const Seen& seen) {
  Queue& q = memory.queue();
  check("commands sent and fetched", q.submitted, r.fetched());
  check("completed", q.completed, seen.completed);
  check("completions, by what became of them", q.completed + q.late + q.stale + q.unknown, r.posted());
  check("slots", memory.free_count() + q.quarantined, q.depth);
}

// Each command that was announced, or would have been but for a recovery, came to one of these ends.
void check_recovered(QueueMemory& memory, const Seen& seen) {
  Queue& q = memory.queue();
  check("submitted, and their ends", q.submitted, q.completed + q.late + q.recovered_slots + q.quarantined);
  check("timeouts", q.timeouts, seen.timeouts);
  check("quarantined slots", q.quarantined, q.timeouts - q.late - q.recovered_slots);
  check("slots", memory.free_count() + q.quarantined, q.depth);
}

// The host's side of recoveries while callers are at work, until they have ended.
class Host {
 public:
  Host(std::vector<std::unique_ptr<QueueMemory>>& queues, Controller& controller, Recovery& recovery, u32& stop, u64 seed)
      : queues_(queues), controller_(controller), r_(recovery), stop_(stop), random_(seed) {}

  void run(const std::atomic<bool>& over) {
    mem::store_system(&stop_, told::kRecover);
    while (!over) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_() % 3000));
      u32 next = recovery::number(mem::load_system(&r_.state)) + 1;
      mem::store_system(&r_.asked, next);
      if (!await(over, recovery::kPaused)) {
        return;
      }
      for (size_t i = 0; i < queues_.size(); i++) {
        if (random_() % 4 != 0) {
          controller_.make_anew(i);
          mem::store_system(&queues_[i]->queue().recovered, next);
        }
      }
      mem::store_system(&r_.made, next);
      if (!await(over, recovery::kRuns)) {
        return;
      }
      recoveries++;
    }
  }

  // Once nobody calls any more: what was begun comes to its end.
  void end() {
    u32 next = recovery::number(mem::load_system(&r_.state)) + 1;
    if (mem::load_system(&r_.asked) == next) {
      mem::store_system(&r_.made, next);
      u32 go_on = 0;
      detail::Recoverer::step(&r_, &go_on);
      detail::Recoverer::step(&r_, &go_on);
      check("the last recovery is over", mem::load_system(&r_.state), next << 2);
    }
  }

  u64 recoveries = 0;

 private:
  bool await(const std::atomic<bool>& over, u32 phase) {
    while ((mem::load_system(&r_.state) & recovery::kPhases) != phase) {
      if (over) {
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }

  std::vector<std::unique_ptr<QueueMemory>>& queues_;
  Controller& controller_;
  Recovery& r_;
  u32& stop_;
  std::mt19937_64 random_;
};

struct Totals {
  u64 commands = 0;
  u64 doorbells = 0;
  u64 timeouts = 0;
  u64 late = 0;
  u64 stale = 0;
  u64 unknown = 0;
  u64 malformed = 0;
  u64 dropped = 0;
  u64 rounds = 0;
  u64 recoveries = 0;
  u64 aborted = 0;
};

class Round {
 public:
  Round(const Shape& shape, u64 seed, Totals& totals) : shape_(shape), seed_(seed), totals_(totals), structs_(shape.queues) {
    recovery_.queues = structs_.data();
    recovery_.queue_count = shape.queues;
    for (u32 i = 0; i < shape.queues; i++) {
      exchanges_.emplace_back();
      queues_.push_back(std::make_unique<QueueMemory>(i + 1, shape.depth, shape.shared, shape.timeout_ns, &stop_, shape.start,
                                                      &structs_[i]));
      structs_[i].recovery = shape.recover ? &recovery_ : nullptr;
    }
    for (u32 i = 0; i < shape.threads; i++) {
      works_.push_back(std::make_unique<Works>(i + 1));
      if (shape.warps != 0) {
        u64 first = static_cast<u64>(shape.threads + i + 1) << 40;
        blocks_.push_back(std::make_unique<BlockCaller>(&queues_[i]->queue(), shape.warps, first, shape.commands));
      }
    }
  }

  void run() {
    std::vector<Seen> seen(shape_.queues);
    std::vector<bool> drained(shape_.queues);
    WorkExecutor executor;
    Controller controller(queues_, executor, shape_.faults, seed_, false);
    most_fetched = shape_.recover ? 2 : 1;
    if (shape_.recover) {
      call_and_recover(controller, seen);
    } else {
      call(seen);
    }
    mem::store_system(&stop_, 0u);
    controller.clean();
    for (u32 i = 0; i < shape_.queues; i++) {
      QueueMemory& memory = *queues_[i];
      drained[i] = drain(memory.queue(), controller.of(i), memory.start(), shape_.shared, *works_[0], seen[i]);
    }
    controller.end();
    for (u32 i = 0; i < shape_.queues; i++) {
      if (drained[i]) {
        if (shape_.recover) {
          check_recovered(*queues_[i], seen[i]);
        } else if (shape_.stop) {
          check_stopped(*queues_[i], controller.of(i), seen[i]);
        } else {
          check_counters(*queues_[i], controller.of(i), seen[i], shape_.timeout_ns == kForever);
        }
      }
      sum(queues_[i]->queue(), controller.of(i));
      totals_.aborted += seen[i].aborted;
    }
    totals_.rounds++;
  }

 private:
  void call_and_recover(Controller& controller, std::vector<Seen>& seen) {
    Host host(queues_, controller, recovery_, stop_, seed_);
    std::atomic<bool> over{false};
    std::thread thread([&] { host.run(over); });
    call(seen);
    over = true;
    thread.join();
    host.end();
    totals_.recoveries += host.recoveries;
  }

  void call(std::vector<Seen>& seen) {
    std::vector<Seen> of_thread(shape_.threads);
    std::vector<std::thread> threads;
    std::vector<std::thread> servers;
    std::vector<u32> callers(shape_.queues, shape_.threads / shape_.queues);
    for (u32 i = 0; i < shape_.servers * shape_.queues; i++) {
      servers.emplace_back([this, i, &callers] {
        Namespace ns = {};
        ns.queues = &queues_[i % shape_.queues]->queue();
        ns.queue_count = 1;
        serve(Storage{}, ns, 0, 1, &callers[i % shape_.queues]);
      });
    }
    for (u32 i = 0; i < shape_.threads; i++) {
      Queue* q = &queues_[i % shape_.queues]->queue();
      threads.emplace_back([this, i, q, &of_thread, &callers] {
        of_thread[i] = shape_.shared       ? call_shared(q, i, callers[i % shape_.queues])
                       : shape_.warps == 0 ? ExclusiveCaller(q, *works_[i], shape_.commands).run()
                                           : call_block(q, i);
      });
    }
    if (shape_.stop) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      mem::store_system(&stop_, 1u);
    }
    for (u32 i = 0; i < shape_.threads; i++) {
      threads[i].join();
      seen[i % shape_.queues].add(of_thread[i]);
    }
    for (std::thread& server : servers) {
      server.join();
    }
  }

  Seen call_shared(Queue* q, u32 i, u32& callers) {
    Exchange& exchange = exchanges_[i % shape_.queues];
    if (shape_.servers == 0) {
      return SharedCaller<SharedQueue>(q, exchange, *works_[i], seed_ + i).run(shape_.commands, shape_.bunch);
    }
    Seen seen = SharedCaller<ServedQueue>(q, exchange, *works_[i], seed_ + i).run(shape_.commands, shape_.bunch);
    leave(&callers);
    return seen;
  }

  // A block begins, or goes on where a warp left; and the other way round.
  Seen call_block(Queue* q, u32 i) {
    Seen seen = ExclusiveCaller(q, *works_[i], seed_ % 2 * shape_.commands / 8).run();
    seen.add(blocks_[i]->run());
    seen.add(ExclusiveCaller(q, *works_[i], shape_.commands / 2).run());
    return seen;
  }

  void sum(const Queue& q, const Responder& r) {
    totals_.commands += r.fetched();
    totals_.doorbells += r.doorbells();
    totals_.timeouts += q.timeouts;
    totals_.late += q.late;
    totals_.stale += q.stale;
    totals_.unknown += q.unknown;
    totals_.malformed += q.malformed;
    totals_.dropped += r.dropped();
  }

  const Shape& shape_;
  u64 seed_;
  Totals& totals_;
  u32 stop_ = 0;
  std::vector<Queue> structs_;
  Recovery recovery_ = {};
  std::vector<std::unique_ptr<QueueMemory>> queues_;
  std::vector<std::unique_ptr<Works>> works_;
  std::vector<std::unique_ptr<BlockCaller>> blocks_;
  std::deque<Exchange> exchanges_;  // of each queue
};

Shape random_shape(std::mt19937_64& random) {
  Shape s = {};
  s.shared = random() % 2 != 0;
  s.servers = s.shared && random() % 2 != 0 ? 1 + random() % 2 : 0;
  s.queues = 1 + random() % 4;
  if (!s.shared && random() % 3 != 0) {
    s.queues = 1 + random() % 2;
    s.warps = pick(random, {1u, 2u, 3u, 4u, 8u});
  }
  s.threads = s.shared ? s.queues * (1 + random() % 4) : s.queues;
  s.depth = s.shared ? pick(random, {32u, 64u, 96u, 992u}) : pick(random, {1u, 2u, 31u, 32u, 1000u});
  s.bunch = 1 + random() % (s.depth / (s.threads / s.queues) < 16 ? s.depth / (s.threads / s.queues) : 16);
  s.commands = 50 + random() % 250;
  // Before positions wrap: each 2^29 in a mark and in the service word, at 2^32 in a counter; 2^13 is a multiple of every
  // ring's double length.
  u32 wrap = static_cast<u32>(random() % 9);
  s.start = wrap == 0 ? 0 : (wrap << 29) - (1u << 13);
  s.timeout_ns = kForever;
  s.recover = s.shared && random() % 2 == 0;
  s.name = "clean";
  switch (random() % 3) {
    case 0:
      s.faults.status = 300;
      break;
    case 1:
      s.name = "faults";
      s.timeout_ns = kSecond / 25;
      s.faults = {300, 300, 20, 10, 300, 300};
      break;
    default:
      s.name = "stop";
      s.recover = false;
      s.stop = random() % 2 == 0;
      s.faults.drop = s.stop ? 50 : 0;
      break;
  }
  return s;
}

void seconds(u64 seconds, u64 seed, Totals& totals) {
  std::mt19937_64 random(seed);
  for (u64 end = nanos() + seconds * kSecond; nanos() < end && violations == 0;) {
    Shape shape = random_shape(random);
    Round(shape, random(), totals).run();
    if (violations != 0) {
      std::fprintf(stderr, "in a round %s%s: %s, %u servers, %u queues of depth %u, %u threads, blocks of %u, bunches of %u, start %x\n",
                   shape.name, shape.recover ? " with recoveries" : "", shape.shared ? "shared" : "owned", shape.servers, shape.queues, shape.depth, shape.threads, shape.warps,
                   shape.bunch, shape.start);
    }
  }
}

void commands(u64 commands, u64 seed, Totals& totals) {
  // Deep, so that threads that share a processor with others get much done in each turn.
  Shape exclusive = {false, 0, 1, 1, 0, 4096, 0, commands / 5 * 4, kForever, 0, false, false, {}, "exclusive"};
  Round(exclusive, seed, totals).run();
  Shape block = {false, 0, 1, 1, 3, 4096, 0, commands / 50, kForever, 0, false, false, {}, "block"};
  Round(block, seed + 2, totals).run();
  Shape shared = {true, 0, 1, 2, 0, 4096, 1500, (commands + 9) / 10, kForever, 0, false, false, {}, "shared"};
  Round(shared, seed + 1, totals).run();
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  if (!parse(argc, argv, "commands", a)) {
    return 2;
  }
  Totals t;
  (a.timed ? seconds : commands)(a.number, a.seed, t);
  std::printf(
      "%llu rounds, %llu commands, %llu doorbells seen, %llu timeouts, %llu dropped, %llu late, %llu stale, %llu unknown, "
      "%llu malformed, %llu recoveries, %llu aborted, %u violations\n",
      t.rounds, t.commands, t.doorbells, t.timeouts, t.dropped, t.late, t.stale, t.unknown, t.malformed, t.recoveries, t.aborted, violations.load());
  return violations == 0 && t.commands != 0 ? 0 : 1;
}
