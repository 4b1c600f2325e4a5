// The device library as a shared library for tests in Java: single functions, and jobs that a thread each runs against the
// embedded controller.
#include <cstring>
#include <mutex>
#include <random>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpunvme/memory.cuh"

namespace gpunvme {
namespace mem {
// A thread's loads of one word are counted: how often it looked. The library has nothing for this.
thread_local const void* watched = nullptr;
thread_local u64 looks = 0;

template <class T>
T counted_load(const T* p) {
  looks += p == watched ? 1 : 0;
  return load(p);
}
}  // namespace mem
}  // namespace gpunvme

#define load counted_load
#include "gpunvme/gpunvme.cuh"
#undef load
#include "queue_memory.h"

using namespace gpunvme;

namespace {

// As TwinJob.java lays it out.
struct Job {
  const Namespace* ns;
  Queue* queue;
  const Buffer* buffer;
  u64 buffer_offset;  // the part of the buffer that is this job's: `chunks` of `chunk_blocks` blocks
  u64 first;          // the blocks of the namespace that are this job's
  u64 blocks;
  u8* image;          // what these blocks hold; read and written
  u8* state;          // of each block: kUnknown, kKnown or kLost; read and written
  u64 seed;
  u32 operations;
  u32 chunks;
  u32 chunk_blocks;
  u32 single;         // one command per operation and no other than Read and Write
  // ---- results
  u32 succeeded;
  u32 failed;         // with a status from the controller
  u32 timeouts;
  u32 stopped;
  u32 busy;
  u32 refused;        // kArgument
  u32 wrong;          // operations that brought other data than was written, or another status than they must have
  u32 last_status;    // of those that failed
  u64 wrong_at;       // the first block of the first of them
};

// What is known of a block.
constexpr u8 kUnknown = 0;  // a write failed
constexpr u8 kKnown = 1;
constexpr u8 kLost = 2;     // a write is perhaps still under way: the block is left alone

// SCT and SC, without CRD, M and DNR.
constexpr Status kCode = 0x7FF;
constexpr Status kCompareFailure = 0x285;

// A thread's random commands on blocks of its own, checked byte by byte.
class Worker {
 public:
  explicit Worker(Job& job) : j(job), bytes_(1ull << job.ns->block_shift), random_(job.seed) {
    for (u32 i = 0; i < j.chunks; i++) {
      free_.push_back(i);
    }
  }

  // `queue`: a SharedQueue or a ServedQueue.
  template <class Q>
  void run(Q queue) {
    while (over_ < j.operations && !free_.empty()) {
      if (j.single != 0) {
        one(queue, random_() % 2 == 0);
        continue;
      }
      switch (random_() % 8) {
        case 0:
          zeroes(queue);
          break;
        case 1:
          compares(queue);
          break;
        case 2:
          count(flush(*j.ns, queue));
          break;
        case 3:
        case 4:
          several(queue);
          break;
        default:
          one(queue, random_() % 2 == 0);
      }
    }
  }

  void run_exclusive() {
    left_ = j.operations;
    taken_.resize(j.blocks);
    ExclusiveQueue queue(j.queue);
    queue.run(*this, *this);
    queue.close();
  }

  // As a block of so many warps, a thread each.
  void run_block(u32 warps) {
    left_ = j.operations;
    taken_.resize(j.blocks);
    block::Twin block(warps);
    std::vector<std::thread> threads;
    for (u32 i = 0; i < warps; i++) {
      threads.emplace_back([this, &block, i] {
        block::Member member(block, i);
        GPUNVME_SHARED(BlockQueue::Shared, shared);
        InTurn worker(*this);
        BlockQueue queue(j.queue, shared);
        queue.run(worker, worker);
        queue.close();
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
  }

  // ---- source and sink of an owned queue

  bool take(bool wanted, Command& c) {
    if (!wanted || left_ == 0 || free_.empty()) {
      return false;
    }
    left_--;
    u64 most = j.blocks / (2 * j.chunks);  // so that there are blocks for all
    most = most < j.chunk_blocks ? most : j.chunk_blocks;
    Piece p = pick(most < j.ns->max_blocks ? static_cast<u32>(most) : j.ns->max_blocks);
    if (p.count == 0) {
      give_back(p);
      return false;
    }
    p.write = random_() % 2 == 0;
    prepare(p);
    Status s = j.ns->describe(p.write ? opcode::kWrite : opcode::kRead, j.first + p.block, p.count, *j.buffer, offset(p), c);
    if (failed(s)) {
      count(s);
      give_back(p);
      return false;
    }
    for (u32 i = 0; i < p.count; i++) {
      taken_[p.block + i] = true;
    }
    c.user = static_cast<u32>(pieces_.size());
    pieces_.push_back(std::move(p));
    return true;
  }

  void done(bool valid, u32 user, u64 slba, Status s) {
    if (!valid) {
      return;
    }
    if (user >= pieces_.size() || pieces_[user].over || j.first + pieces_[user].block != slba) {
      wrong(slba);
      return;
    }
    Piece& p = pieces_[user];
    p.over = true;
    for (u32 i = 0; i < p.count; i++) {
      taken_[p.block + i] = false;
    }
    settle(p, s);
  }

 private:
  // A warp of a block: all of them share the worker.
  class InTurn {
   public:
    explicit InTurn(Worker& worker) : w(worker) {}

    bool take(bool wanted, Command& c) {
      std::lock_guard<std::mutex> lock(w.turn_);
      return w.take(wanted, c);
    }

    void done(bool valid, u32 user, u64 slba, Status s) {
      std::lock_guard<std::mutex> lock(w.turn_);
      w.done(valid, user, slba, s);
    }

   private:
    Worker& w;
  };

  struct Piece {
    u64 block;  // counted from the job's first
    u32 count;
    u32 chunk;
    bool write;
    bool over;
  };

  // ---- operations

  template <class Q>
  void one(Q queue, bool writing) {
    Piece p = pick(j.single != 0 && j.ns->max_blocks < j.chunk_blocks ? j.ns->max_blocks : j.chunk_blocks);
    p.write = writing;
    prepare(p);
    settle(p, writing ? write(*j.ns, queue, j.first + p.block, p.count, *j.buffer, offset(p))
                      : read(*j.ns, queue, j.first + p.block, p.count, *j.buffer, offset(p)));
  }

  // Some reads at once; their results are taken in one of the ways that there are.
  template <class Q>
  void several(Q queue) {
    std::vector<Piece> pieces;
    std::vector<Token> tokens;
    u32 most = j.ns->max_blocks < j.chunk_blocks ? j.ns->max_blocks : j.chunk_blocks;
    for (u32 n = 1 + random_() % 3; n != 0 && !free_.empty(); n--) {
      Piece p = pick(most);
      prepare(p);
      Token token;
      Status s = read_async(*j.ns, queue, j.first + p.block, p.count, *j.buffer, offset(p), token);
      if (failed(s)) {
        settle(p, s);
      } else {
        pieces.push_back(std::move(p));
        tokens.push_back(std::move(token));
      }
    }
    u32 way = random_() % 4;
    Status quiet = way == 3 ? queue.quiet() : static_cast<Status>(status::kSuccess);
    for (size_t left = pieces.size(); left != 0; left--) {
      u32 which = static_cast<u32>(left) - 1;
      Status s = status::kPending;
      if (way == 0) {
        s = queue.wait_any(tokens.data(), static_cast<u32>(tokens.size()), which);
      } else if (way == 1) {
        ParkedToken parked;
        tokens[which].park(parked);
        Token adopted = Token::adopt(parked);
        s = queue.wait(adopted);
      } else {
        // What was in flight is over behind quiet(), and may be tested at once.
        s = queue.test(tokens[which]);
        bool pending = s == status::kPending;
        s = pending ? queue.wait(tokens[which]) : s;
        if (pending && way == 3 && quiet == status::kSuccess) {
          wrong(j.first + pieces[which].block);
        }
      }
      if (tokens[which].valid() || pieces[which].over) {
        wrong(j.first + pieces[which].block);
      }
      pieces[which].over = true;
      settle(pieces[which], s);
    }
  }

  template <class Q>
  void zeroes(Q queue) {
    Piece p = pick(j.chunk_blocks);
    give_back(p);
    Status s = write_zeroes(*j.ns, queue, j.first + p.block, p.count);
    count(s);
    std::memset(image(p), 0, p.count * bytes_);
    note(p, !failed(s) ? kKnown : unsure(s) ? kLost : kUnknown);
  }

  // With equal data, or with one byte changed.
  template <class Q>
  void compares(Q queue) {
    Piece p = pick(j.chunk_blocks < j.ns->max_blocks ? j.chunk_blocks : j.ns->max_blocks);
    if (!all(p, kKnown)) {
      give_back(p);
      return;
    }
    std::memcpy(memory(p), image(p), p.count * bytes_);
    bool differs = random_() % 2 == 0;
    if (differs) {
      memory(p)[random_() % (p.count * bytes_)] ^= 1;
    }
    Status s = compare(*j.ns, queue, j.first + p.block, p.count, *j.buffer, offset(p));
    if (differs && (s & status::kMade) == 0 && (s & kCode) == kCompareFailure) {
      s = status::kSuccess;
    } else if (differs && s == status::kSuccess) {
      wrong(j.first + p.block);
    }
    count(s);
    if (!unsure(s)) {
      give_back(p);
    }
  }

  // ---- data

  // A chunk of the buffer, and blocks that are neither lost nor with a command in flight, which has no order with this one. Not
  // one block if there are none.
  Piece pick(u32 most) {
    Piece p = {random_() % j.blocks, 0, free_.back(), false, false};
    free_.pop_back();
    for (u64 i = 0; i < j.blocks && !usable(p.block); i++) {
      p.block = (p.block + 1) % j.blocks;
    }
    u32 count = 1 + static_cast<u32>(random_() % most);
    while (p.count < count && p.block + p.count < j.blocks && usable(p.block + p.count)) {
      p.count++;
    }
    return p;
  }

  bool usable(u64 block) const { return j.state[block] != kLost && (taken_.empty() || !taken_[block]); }

  void give_back(const Piece& p) { free_.push_back(p.chunk); }

  u64 offset(const Piece& p) const { return j.buffer_offset + p.chunk * j.chunk_blocks * bytes_; }
  u8* memory(const Piece& p) const { return static_cast<u8*>(j.buffer->memory) + offset(p); }
  u8* image(const Piece& p) const { return j.image + p.block * bytes_; }

  // Fills the buffer: for a read with what the read must overwrite.
  void prepare(Piece& p) {
    u64 salt = random_();
    u64* words = reinterpret_cast<u64*>(memory(p));
    for (u64 i = 0; i < p.count * bytes_ / 8; i++) {
      words[i] = salt += 0x9E3779B97F4A7C15ull;
    }
  }

  // What follows from a read's or write's status.
  void settle(const Piece& p, Status s) {
    count(s);
    if (p.write) {
      std::memcpy(image(p), memory(p), p.count * bytes_);
      note(p, !failed(s) ? kKnown : unsure(s) ? kLost : kUnknown);
    } else if (!failed(s)) {
      check(p);
    }
    if (!unsure(s)) {
      give_back(p);  // else the controller may still use it
    }
  }

  void check(const Piece& p) {
    for (u32 i = 0; i < p.count; i++) {
      if (j.state[p.block + i] == kKnown && std::memcmp(memory(p) + i * bytes_, image(p) + i * bytes_, bytes_) != 0) {
        wrong(j.first + p.block + i);
        return;
      }
    }
  }

  void note(const Piece& p, u8 state) { std::memset(j.state + p.block, state, p.count); }

  bool all(const Piece& p, u8 state) const {
    for (u32 i = 0; i < p.count; i++) {
      if (j.state[p.block + i] != state) {
        return false;
      }
    }
    return true;
  }

  // ---- results

  static bool unsure(Status s) { return s == status::kTimeout || s == status::kStopped; }

  void count(Status s) {
    over_++;
    switch (s) {
      case status::kSuccess:
        j.succeeded++;
        return;
      case status::kTimeout:
        j.timeouts++;
        break;
      case status::kStopped:
        j.stopped++;
        break;
      case status::kBusy:
        j.busy++;
        break;
      case status::kArgument:
        j.refused++;
        break;
      default:
        j.failed++;
    }
    j.last_status = s;
  }

  void wrong(u64 block) {
    if (j.wrong++ == 0) {
      j.wrong_at = block;
    }
  }

  Job& j;
  const u64 bytes_;
  std::mt19937_64 random_;
  std::vector<u32> free_;  // chunks
  u32 over_ = 0;
  // exclusive and block
  u32 left_ = 0;
  std::vector<Piece> pieces_;
  std::vector<bool> taken_;  // blocks that a command in flight has
  std::mutex turn_;          // block
};

Command command(const u64* f) {
  return {static_cast<u32>(f[0]), static_cast<u32>(f[1]), f[2], static_cast<u32>(f[3]), static_cast<u32>(f[4]), f[5], f[6],
          static_cast<u32>(f[7])};
}

void tell(const Command& c, u64* f) {
  f[0] = c.opcode;
  f[1] = c.nsid;
  f[2] = c.slba;
  f[3] = c.blocks;
  f[4] = c.flags;
  f[5] = c.prp1;
  f[6] = c.prp2;
  f[7] = c.user;
}

}  // namespace

extern "C" {

u64 twin_job_size() { return sizeof(Job); }

void twin_shared(Job* job) { Worker(*job).run(SharedQueue(job->queue)); }

// The caller depends on a thread that serves its queue, as may those of other callers.
void twin_served(Job* job) {
  Namespace ns = {};
  ns.queues = job->queue;
  ns.queue_count = 1;
  Storage storage = {};
  u32 callers = 1;
  std::thread server([&] { serve(storage, ns, 0, 1, &callers); });
  Worker(*job).run(ServedQueue(job->queue));
  leave(&callers);
  server.join();
}

void twin_exclusive(Job* job) { Worker(*job).run_exclusive(); }

void twin_block(Job* job, u32 warps) { Worker(*job).run_block(warps); }

// ---- single functions; a command is eight words

void twin_write_sqe(Queue* q, u32 position, const u64* fields, u32 cid, u32 together) {
  if (together != 0) {
    detail::write_sqes<4>(q, q->sq, q->sq_mask(), position, 1, command(fields), cid);
  } else {
    detail::write_sqe(q, position, command(fields), cid);
  }
}

u32 twin_next_cid(const Queue* q, u32 cid) { return q->next_cid(cid); }

void twin_entries(const Buffer* b, u64 offset, u64 bytes, u64* prp) { prp::entries(*b, offset, bytes, prp[0], prp[1]); }

Status twin_describe(const Namespace* ns, u32 op, u64 slba, u32 count, const Buffer* b, u64 offset, u64* fields) {
  Command c = {};
  Status s = ns->describe(op, slba, count, *b, offset, c);
  tell(c, fields);
  return s;
}

Status twin_read(const Namespace* ns, Queue* q, u64 slba, u64 blocks, const Buffer* b, u64 offset) {
  return read(*ns, SharedQueue(q), slba, blocks, *b, offset);
}

Status twin_write_zeroes(const Namespace* ns, Queue* q, u64 slba, u32 blocks) {
  return write_zeroes(*ns, SharedQueue(q), slba, blocks);
}

// Submits reads of block 0 without waiting, until that fails; then waits for all. Statuses: of the failure and of the last wait.
u32 twin_exhaust(const Namespace* ns, Queue* q, const Buffer* b, Status* statuses) {
  SharedQueue queue(q);
  std::vector<Token> tokens;
  for (;;) {
    Token token;
    statuses[0] = read_async(*ns, queue, 0, 1, *b, 0, token);
    if (failed(statuses[0])) {
      break;
    }
    tokens.push_back(std::move(token));
  }
  statuses[1] = status::kSuccess;
  for (Token& token : tokens) {
    Status s = queue.wait(token);
    statuses[1] = failed(s) ? s : statuses[1];
    // A token is good for one wait.
    statuses[1] = queue.wait(token) == status::kArgument ? statuses[1] : static_cast<Status>(status::kPending);
  }
  return static_cast<u32>(tokens.size());
}

// Waits for a command at another queue, and for one whose token was moved. Returns the two statuses, and whether the token is
// valid then.
u32 twin_wait_elsewhere(Status* statuses) {
  u32 stop = 0;
  twin::QueueMemory memory(1, 32, true, 1000000000, &stop);
  twin::QueueMemory other(1, 32, true, 1000000000, &stop);
  Token token;
  SharedQueue(&memory.queue()).try_submit({opcode::kRead, 1, 0, 1, 0, 0, 0, 0}, token);
  statuses[0] = SharedQueue(&other.queue()).wait(token);
  Token moved = std::move(token);
  statuses[1] = SharedQueue(&memory.queue()).wait(token);
  return moved.valid() && !token.valid() ? 1 : 0;
}
static_assert(!std::is_copy_constructible_v<Token> && !std::is_copy_assignable_v<Token>, "one token for one command");

// Has every slot of a queue quarantined, then submits. Returns how long that took, in ns; statuses: of that, and of a second
// try, once the completion of one command has come after all.
u64 twin_all_lost(Status* statuses) {
  u32 stop = 0;
  twin::QueueMemory memory(1, 32, true, 20000000000ull, &stop);
  Queue& q = memory.queue();
  SharedQueue queue(&q);
  Command c = {opcode::kRead, 1, 0, 1, 0, 0, 0, 0};
  Token tokens[32];
  for (Token& token : tokens) {
    queue.try_submit(c, token);
  }
  stop = 1;
  for (Token& token : tokens) {
    queue.wait(token);
  }
  stop = 0;
  u64 begin = nanos();
  statuses[0] = queue.execute(c);
  u64 took = nanos() - begin;
  u32 cid = *reinterpret_cast<const u32*>(q.sq) >> 16;
  q.cq[0].dw2 = q.qid << 16;
  q.cq[0].dw3 = 1u << 16 | cid;
  statuses[1] = queue.submit(c, tokens[0]);
  return took;
}

// A completion, as the controller writes it, of the command whose SQE is at a position.
void answer(Queue& q, u32 completion, u32 position, Status s) {
  u32 cid = *reinterpret_cast<const u32*>(q.sq + position) >> 16;
  q.cq[completion].dw2 = q.qid << 16;
  q.cq[completion].dw3 = s << 17 | 1u << 16 | cid;
}

// What the calls that take tokens say, step by step: tokensTell in DeviceFunctionsTest has the steps.
void twin_tokens(u32* said) {
  u32 stop = 0;
  twin::QueueMemory memory(1, 32, true, 20000000, &stop);
  twin::QueueMemory other(2, 32, true, 20000000, &stop);
  Queue& q = memory.queue();
  SharedQueue queue(&q);
  Command c = {opcode::kRead, 1, 0, 1, 0, 0, 0, 0};
  Token tokens[3];
  u32 which = 9;
  *said++ = queue.wait_any(tokens, 3, which);
  for (Token& token : tokens) {
    queue.submit(c, token);
  }
  *said++ = queue.test(tokens[0]);
  *said++ = queue.quiet();
  *said++ = queue.poll();
  answer(q, 0, 1, 0);
  *said++ = queue.wait_any(tokens, 3, which);
  *said++ = which;
  *said++ = queue.wait_any(tokens + 1, 1, which);
  answer(q, 1, 2, 0x281);
  *said++ = queue.test(tokens[2]);
  ParkedToken parked = {};
  tokens[0].park(parked);
  *said++ = queue.wait(tokens[0]);
  answer(q, 2, 0, 0);
  Token adopted = Token::adopt(parked);
  *said++ = SharedQueue(&other.queue()).test(adopted);
  *said++ = queue.wait(adopted);
  Token again = Token::adopt(parked);
  *said++ = queue.wait(again);
  *said++ = queue.quiet();
  queue.submit(c, tokens[0]);
  stop = 1;
  *said++ = queue.test(tokens[0]);
  stop = 0;
  *said++ = tokens[0].valid();
  queue.submit(c, tokens[1]);
  queue.submit(c, tokens[2]);
  SharedQueue(&other.queue()).submit(c, tokens[0]);
  *said++ = queue.wait_any(tokens, 3, which);
  *said++ = queue.wait_any(tokens + 1, 2, which);
  *said++ = which;
  *said++ = tokens[1].valid();
  *said++ = tokens[2].valid();
  *said++ = q.quarantined;
}

// What callers that do not serve see without anybody who does; then with one. Returns whether the doorbell told of what was
// submitted and not waited for, once the one that serves has left.
u32 twin_unserved(Status* statuses) {
  u32 stop = 0;
  twin::QueueMemory memory(1, 32, true, 20000000, &stop);
  Queue& q = memory.queue();
  ServedQueue queue(&q);
  Command c = {opcode::kRead, 1, 0, 1, 0, 0, 0, 0};
  statuses[0] = queue.execute(c);
  statuses[1] = queue.poll();
  Token token;
  statuses[2] = queue.submit(c, token);
  statuses[3] = queue.test(token);
  statuses[4] = *q.sq_doorbell;
  Namespace ns = {};
  ns.queues = &q;
  ns.queue_count = 1;
  Storage storage = {};
  u32 callers = 0;
  serve(storage, ns, 0, 1, &callers);
  // One that is told to stop serves no more, whoever is left; one without a queue does not begin.
  callers = 1;
  stop = 1;
  serve(storage, ns, 0, 1, &callers);
  stop = 0;
  serve(storage, ns, 1, 1, &callers);
  return *q.sq_doorbell;
}

// A block of so many threads reads a range together; a status for each.
void twin_read_block(const Namespace* ns, Queue* q, u64 slba, u64 blocks, const Buffer* b, u64 offset, u32 warps, Status* statuses) {
  block::Twin block(warps);
  std::vector<std::thread> threads;
  for (u32 i = 0; i < warps; i++) {
    threads.emplace_back([=, &block] {
      block::Member member(block, i);
      statuses[i] = read_block(*ns, SharedQueue(q), slba, blocks, *b, offset);
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

Status twin_read_warp(const Namespace* ns, Queue* q, u64 slba, u64 blocks, const Buffer* b, u64 offset) {
  return read_warp(*ns, SharedQueue(q), slba, blocks, *b, offset);
}

Status twin_read_one(const Namespace* ns, Queue* q, u64 slba, u64 blocks, const Buffer* b, u64 offset) {
  return read_one(*ns, SharedQueue(q), slba, blocks, *b, offset);
}

// Submits `count` commands one by one to a shared queue whose submission positions count from `start`. Returns how often the
// tickets were looked at.
u64 twin_looks(u32 start, u32 count) {
  u32 stop = 0;
  twin::QueueMemory memory(1, 32, true, 1000000000, &stop);
  memory.queue().sq_tail = start;
  *memory.queue().service_word() = service::word(start, 0, false);
  SharedQueue queue(&memory.queue());
  mem::watched = &memory.queue().sq_tail;
  mem::looks = 0;
  for (u32 i = 0; i < count; i++) {
    Token token;
    queue.try_submit({opcode::kRead, 1, i, 1, 0, 0, 0, 0}, token);
  }
  mem::watched = nullptr;
  return mem::looks;
}

u32 twin_nth(u32 bits, u32 n) { return warp::nth(bits, n); }

u64 twin_service_word(u32 rung, u32 head, u32 wide) { return service::word(rung, head, wide != 0); }

u32 twin_service_rung(u64 word) { return service::rung(word); }

u32 twin_service_head(u64 word) { return service::head(word); }

void twin_cqe(u32 dw2, u32 dw3, u32* fields) {
  fields[0] = cqe_sqid(dw2);
  fields[1] = cqe_cid(dw3);
  fields[2] = cqe_phase(dw3);
  fields[3] = cqe_status(dw3);
}

u32 twin_set_of(u64 page, u32 set_count) { return detail::set_of(page + 1, set_count); }

// A page is missed `times` at a moment of the clock, and then leaves the cache, for a caller who sees the clock at `then`: whether a
// tier keeps it that wants 3 misses and whose ages have 16.
u32 twin_tier_keeps(u64 clock, u32 times, u64 then) {
  constexpr u32 kPageShift = 12;
  constexpr u64 kTag = 77;
  static FrameSet set;
  static char memory[kWays << kPageShift];
  static const char page[1 << kPageShift] = {};
  set = {};
  u32 hand = 0;
  u64 uses = clock >> 4 & 0xFFFF;  // nothing, last counted in this age
  HostTier tier = {};
  tier.sets = &set;
  tier.hands = &hand;
  tier.uses = &uses;
  tier.memory = memory;
  tier.set_count = 1;
  tier.age_shift = 4;
  tier.page_shift = kPageShift;
  tier.margin = 3;
  for (u32 i = 0; i < times; i++) {
    tier.misses = clock;
    tier.note(kTag);
  }
  tier.misses = then;
  tier.keep(kTag, page);
  return static_cast<u32>(tier.inserts);
}

}  // extern "C"
