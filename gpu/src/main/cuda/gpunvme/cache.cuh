#pragma once
// A cache of pages in GPU memory, shared by all threads of all kernels on a storage. What most kernels call is in array.cuh;
// docs/page-cache.md has the protocol, names here are names there.
#include "file.cuh"
#include "tier.cuh"

namespace gpunvme {

// Beside each frame.
struct alignas(16) FrameInfo {
  Queue* queue;  // of the command below
  u32 parked;    // kFilling: the command, where nobody waits for it yet; 0: somebody does
  u32 end;       // kFailed, kLost: the status, and above it the CID of a command that may still move data; kStuck: the same
};
static_assert(sizeof(FrameInfo) == 16, "layout shared with the host");

struct alignas(16) SetSide {
  u32 lock;      // held while a frame is chosen, never while data moves: without it a page could get two frames
  u32 hand;      // where the next frame is looked for first
  u64 acquires;  // of pages in this set, by groups of lanes
};
static_assert(sizeof(SetSide) == 16, "layout shared with the host");

// Pages of one file, partition, namespace or set. Page p of the cache is bytes (p - first) << page_shift of it.
struct alignas(64) PageSource {
  u64 first;
  u64 pages;
  const DeviceFile* file;
  u32 tiered;     // whether they may be in the host tier: no array of them is, or ever was, writable
  u32 reserved0;
  u32* sums;      // of a cache that verifies: of each page the CRC-32C that it must have, or 0 where that is not known
  u64 reserved1[3];
};
static_assert(sizeof(PageSource) == 64, "layout shared with the host");

struct alignas(128) PageCache {
  // ---- fixed: written by the host
  FrameSet* sets;
  SetSide* sides;
  FrameInfo* infos;          // set_count * kWays
  char* memory;              // frame f is at f << page_shift
  const Storage* storage;
  const PageSource* sources; // by first
  u64 buffer_offset;         // of frame 0 in its registered buffer
  u32 buffer;                // the number of that
  u32 source_count;
  u32 set_count;
  u32 page_shift;
  u32 counts;                // whether acquires are counted
  u32 zero;                  // always, and no compiler knows it
  u64 timeout_ns;            // how long a page waits for a frame
  HostTier* tier;            // or null
  u32 verifies;              // whether each page that arrives is compared with what it was
  u32 reserved0;
  u64 reserved1[3];

  // ---- counters, in pages
  u64 misses;       // frames that were given to a page
  u64 joined;       // times that a lane waited for somebody else's miss
  u64 prefetched;
  u64 reads;        // from the SSD, that succeeded
  u64 writes;
  u64 evictions;    // of pages that were valid
  u64 conflicts;    // times that no frame of a set could be had
  u64 read_failures;
  u64 write_failures;
  u64 lost;         // frames that became kLost or kStuck
  u64 regained;     // that came back while a kernel ran
  u64 parked;       // prefetched pages, at this moment, for which nobody has come: their commands keep slots
  u64 corrupt;      // that arrived with other bytes than they had before
  u64 reserved2[3];

  GPUNVME_FN u32 set_of(u64 tag) const { return detail::set_of(tag, set_count); }

  GPUNVME_FN u64* word(u32 f) const { return sets[f / kWays].word + f % kWays; }
  GPUNVME_FN char* data(u32 f) const { return memory + (static_cast<u64>(f) << page_shift); }

  // Of a page that some array has.
  GPUNVME_FN const PageSource& source(u64 page) const {
    u32 found = 0;
    GPUNVME_ROLLED
    for (u32 end = source_count; end - found > 1;) {
      u32 middle = found + (end - found) / 2;
      if (sources[middle].first <= page) {
        found = middle;
      } else {
        end = middle;
      }
    }
    return sources[found];
  }
};
static_assert(sizeof(PageCache) == 256, "layout shared with the host");

namespace detail {

// The lanes of a mask that want the same page as this one.
GPUNVME_FN u32 same_page(u32 active, u64 tag) {
  u64 first = warp::shuffle(active, tag, warp::lowest(active));
  return warp::ballot(active, tag == first) == active ? active : warp::match(active, tag);
}

// The same by all lanes of a group of at least kWays that want the same page: each looks at one word.
GPUNVME_FN u32 find_together(const u64* words, u64 tag, u32 group) {
  u32 rank = warp::rank(group);
  u64 word = rank < kWays ? mem::load(words + rank) : 0;
  u32 lanes = warp::ballot(group, rank < kWays && frame::tag(word) == tag);
  return lanes == 0 ? kWays : warp::popcount(group & ((1u << warp::lowest(lanes)) - 1));
}

// The CRC-32C of bytes before which it was `crc`: little code rather than fast.
GPUNVME_FN u32 add_crc(u32 crc, u32 value, u32 bits) {
  crc ^= value;
  GPUNVME_ROLLED
  for (u32 i = 0; i < bits; i++) {
    crc = crc >> 1 ^ (0x82F63B78u & (0 - (crc & 1)));
  }
  return crc;
}

// Of a cache that verifies: the CRC-32C of what a frame has of a page, up to the end of its source. 0 says that one is not known, so it is 1 then.
GPUNVME_FN u32 crc_of(const PageCache* c, const PageSource& source, u64 page, u32 f) {
  u64 left = source.file->size - ((page - source.first) << c->page_shift);
  u32 bytes = left >> c->page_shift != 0 ? 1u << c->page_shift : static_cast<u32>(left);
  const char* data = c->data(f);
  u32 crc = ~0u;
  GPUNVME_ROLLED
  for (u32 at = 0; at < bytes;) {
    bool word = bytes - at >= 4;
    crc = add_crc(crc, word ? *reinterpret_cast<const u32*>(data + at) : static_cast<u8>(data[at]), word ? 32 : 8);
    at += word ? 4 : 1;
  }
  return ~crc != 0 ? ~crc : 1;
}

// Of such a cache: a page was written to the SSD, and is what it must be from now on.
GPUNVME_NOINLINE void note_written(PageCache* c, u32 f) {
  u64 page = frame::tag(mem::load(c->word(f))) - 1;
  const PageSource& source = c->source(page);
  mem::store(source.sums + (page - source.first), crc_of(c, source, page, f));
}

// Of such a cache: kCorrupt if a page that has arrived is not what it was when it was read for the first time, or written last. Whoever wants
// it next gets it from the SSD.
GPUNVME_NOINLINE Status verify(PageCache* c, u64 page, u32 f) {
  const PageSource& source = c->source(page);
  u32* sum = source.sums + (page - source.first);
  u32 is = crc_of(c, source, page, f);
  u32 should = mem::load(sum);
  if (should == 0) {
    mem::store(sum, is);
  } else if (is != should) {
    mem::count(&c->corrupt);
    if (c->tier != nullptr) {
      c->tier->drop(page + 1);
    }
    return status::kCorrupt;
  }
  return status::kSuccess;
}

// What a miss does before it turns to the SSD, with a frame that is its own. Both have their own registers, as few as can be.

// The page that was in the frame goes to the host tier, if it is wanted there. ~0: there was none.
GPUNVME_NOINLINE void keep_in_tier(PageCache* c, u64 page, u32 f) {
  if (page != ~0ull && mem::load(&c->source(page).tiered) != 0) {
    c->tier->keep(page + 1, c->data(f));
  }
}

// What became of the page if it came from the host tier, and so of the frame; kPending: it did not. Looks at its source only now that
// the frame is the page's: if no array of it was writable before this, nobody has stored to it.
GPUNVME_NOINLINE Status take_from_tier(PageCache* c, u64 page, u32 f) {
  if (mem::load(&c->source(page).tiered) == 0) {
    return status::kPending;
  }
  c->tier->note(page + 1);
  if (!c->tier->take(page + 1, c->data(f))) {
    return status::kPending;
  }
  Status s = c->verifies == 0 ? static_cast<Status>(status::kSuccess) : verify(c, page, f);
  u64 change = frame::change(frame::kFilling, frame::kValid);
  if (failed(s)) {
    mem::store(&c->infos[f].end, s);
    change = frame::change(frame::kFilling, frame::kFailed) - ((page + 1) << frame::kTagShift);
  }
  // Release: the data, or how it ended.
  mem::fence_gpu();
  mem::add(c->word(f), change);
  return s;
}

}  // namespace detail

// What became of a page that was asked for: a failure, or success and the frame.
struct Fetched {
  Status status;
  u32 frame;
  bool fresh;  // an overwrite of a page that was not there: it has no contents, and the caller ends with written()
};

// How threads get at pages. kHelps: as in CallersQueue.
template <bool kHelps>
class CachedPages {
 public:
  // `storage`: a handle of its own that the kernel was given, for its stop word; null: the cache's.
  GPUNVME_FN explicit CachedPages(PageCache* cache, const Storage* storage = nullptr)
      : c(cache), storage_(storage != nullptr ? *storage : *cache->storage) {}

  // Takes a reference for each lane of `active` to the page that it wants, where the page is in the cache; else takes none.
  // `group`: the lanes that want the same page and so have the same result. kAcquires: whatever follows sees the page's data. Else
  // mem::load_value() does, which is enough for an element, and leaves the L1 cache as it is: it is issued once the reference is there,
  // as no load is before a branch that it depends on, and goes to the L2 cache, where the data was before the word said so.
  template <bool kAcquires>
  GPUNVME_FN bool touch(u64 page, u32 active, u32& group, u32& frame_number) {
    u64 tag = page + 1;
    u32 set = c->set_of(tag);
    group = detail::same_page(active, tag);
    u32 leader = warp::lowest(group);
    const u64* words = c->sets[set].word;
    // All lanes of those that call or none: see fetch().
    bool together = warp::kWidth > 1 && group == active && warp::popcount(group) >= kWays;
    u32 way = together ? detail::find_together(words, tag, group) : detail::find(words, tag);
    u64 seen = 0;
    if (warp::lane() == leader && way != kWays) {
      // Acquire: whoever published the page had seen its data in place.
      u64* word = c->sets[set].word + way;
      u64 references = warp::popcount(group);
      seen = kAcquires ? mem::fetch_add_acquire(word, references) : mem::fetch_add(word, references);
    }
    // What the leader has acquired, for all lanes: a shuffle orders no memory.
    warp::sync(active);
    // The leader's, all of it: it may have found the page a moment earlier or later.
    seen = warp::shuffle(active, seen, leader);
    way = warp::shuffle(active, way, leader);
    bool hit = way != kWays && frame::tag(seen) == tag && frame::readable(seen) &&
               (seen & frame::kReferences) < frame::kMostReferences;
    frame_number = set * kWays + way;
    if (warp::lane() == leader) {
      if (way != kWays && !hit) {
        mem::add(c->sets[set].word + way, 0 - static_cast<u64>(warp::popcount(group)));
      }
      if (hit && (seen & frame::kUsed) == 0) {
        mem::set_bits(c->sets[set].word + way, frame::kUsed);
      }
      if (c->counts != 0) {
        mem::count(&c->sides[set].acquires);
      }
    }
    return hit;
  }

  // Whether the host has told this kernel to stop.
  GPUNVME_FN bool stopped() const { return storage_.namespaces[0].queues->told_to_stop(storage_.stop); }

  // Gives back references to a frame; what was loaded from it was loaded.
  GPUNVME_FN void release(u32 f, u32 references) {
    // Release: the loads come before the next page's data.
    mem::fence_gpu();
    mem::add(c->word(f), 0 - static_cast<u64>(references));
  }

  // The same by all lanes of `active`, those of touch(), and without a fence: `used` is of what each lane has loaded, and what is given
  // back depends on it, so that it has arrived.
  GPUNVME_FN void release_used(u32 active, u32 group, bool hit, u32 f, u32 used) {
    u32 waited = warp::ballot(active, (used & c->zero) != 0);
    if (hit && warp::lane() == warp::lowest(group)) {
      mem::add(c->word(f), 0 - static_cast<u64>(warp::popcount(group) + waited));
    }
  }

  // The same of a frame that was stored to. The mark comes after the stores, so that one who cleans either writes them or leaves
  // the mark; and before the reference is gone, so that nobody takes the frame between.
  GPUNVME_FN void release_dirty(u32 f, u32 references) {
    mem::fence_gpu();
    mem::set_bits(c->word(f), frame::kDirty | frame::kUsed);
    mem::add(c->word(f), 0 - static_cast<u64>(references));
  }

  // Gets the page that each lane wants, from the SSD if need be: all misses of the lanes that call together are under way at once.
  // On success the lane has a reference. kBusy if no frame can be had: whoever tries again gives back first what his warp holds.
  // `overwrite`: nothing is read, the frame has no contents, and nobody else gets the page before written(); no two lanes that
  // call together want the same page then.
  //
  // Each lane goes its own way here, also where several want the same page. It exchanges nothing with the others of its warp: while some of
  // them are in calls of queues, which do, whoever waits for all in such an operation was seen to go on without them (H100). Lanes that
  // come to the same command together have theirs under way together.
  GPUNVME_FN Fetched fetch(u64 page, bool overwrite) {
    u64 tag = page + 1;
    Fetched result = {status::kPending, 0, false};
    u32 bad = 0;  // rounds in which the SSD did not write the frame that was to be had
    GPUNVME_ROLLED
    for (u32 round = 0; round < kRounds && result.status == status::kPending; round++) {
      Claim claim = {What::kAgain, 0, 0};
      GPUNVME_ROLLED
      for (u32 tries = 0; tries < kTries && claim.what == What::kAgain; tries++) {
        claim = try_claim(tag, 1);
      }
      if (claim.what == What::kFill) {
        Status came = by_tier(claim, tag);
        // As if somebody else had ended it, who says how.
        claim.what = came == status::kPending ? What::kFill : came == status::kSuccess ? What::kHold : What::kJoin;
      }
      bool fills = claim.what == What::kFill && !overwrite;
      bool cleans = claim.what == What::kClean;
      Moved moved = {status::kSuccess, nullptr, 0};
      // One call for both, and for all lanes.
      if (fills || cleans) {
        moved = move(fills ? opcode::kRead : opcode::kWrite, fills ? tag - 1 : claim.page, claim.frame);
      }
      if (fills) {
        publish(claim.frame, tag, moved);
      }
      if (cleans) {
        cleaned(claim.frame, moved);
      }
      result = settle(claim, tag, moved, overwrite);
      bad += failed(moved.status) ? 1 : 0;
      if (bad == kRounds) {
        result.status = moved.status;
      }
    }
    result.status = result.status == status::kPending ? static_cast<Status>(status::kBusy) : result.status;
    return result;
  }

  // Whether the first bytes of a page, so many, are all that its source has there.
  GPUNVME_FN bool is_rest(u64 page, u64 bytes) const {
    const PageSource& source = c->source(page);
    return ((page - source.first) << c->page_shift) + bytes >= source.file->size;
  }

  // The end of an overwrite: the page is there, and has to be written.
  GPUNVME_FN void written(u32 f) {
    mem::fence_gpu();
    mem::add(c->word(f), frame::change(frame::kFilling, frame::kValid) + frame::kDirty - 1);
  }

  // Begins to read a page, if it is not in the cache and there are a frame and a slot for it. Pages that take several commands
  // are left alone, and cost no other page its frame. Pages for which nobody has come yet leave most slots to others, who may have
  // to come first.
  GPUNVME_NOINLINE void prefetch(u64 page) {
    u64 tag = page + 1;
    if (detail::find(c->sets[c->set_of(tag)].word, tag) != kWays) {
      return;
    }
    Piece piece = this->piece(page, 0, 0);
    if (piece.hole || (piece.bytes != page_bytes() && !piece.last)) {
      return;
    }
    detail::SetTarget<kHelps> target = this->target(*piece.set);
    CallersQueue<kHelps> queue = target.queue(piece.rest);
    bool room = mem::fetch_add(&c->parked, 1ull) < queue.pair()->depth / kParkedShare;
    Claim claim = room ? try_claim(tag, 0) : Claim{What::kNothing, 0, 0};
    if (claim.what != What::kFill) {
      mem::add(&c->parked, ~0ull);
      return;
    }
    if (by_tier(claim, tag) != status::kPending) {
      mem::add(&c->parked, ~0ull);
      mem::count(&c->prefetched);
      return;
    }
    piece.rest.offset += static_cast<u64>(claim.frame) << c->page_shift;
    Command command;
    Token token;
    Status s = target.describe(opcode::kRead, piece.rest, piece.blocks, command);
    s = failed(s) ? s : queue.try_submit(command, token);
    if (failed(s)) {
      mem::add(&c->parked, ~0ull);
      // Whoever waits for the page reads it then, also where this kernel is to stop.
      Moved none = {status::kBusy, nullptr, 0};
      publish(claim.frame, tag, none);
      return;
    }
    mem::count(&c->prefetched);
    ParkedToken parked;
    token.park(parked);
    c->infos[claim.frame].queue = parked.queue;
    // Release: the queue before the command.
    mem::fence_gpu();
    mem::store(&c->infos[claim.frame].parked, parked.command);
  }

  // Writes what is dirty of pages first..first + pages to their sources: of every so many sets one. Called by whole warps; each
  // lane has its own result, the first failure that it met. What was stored before the call, as far as this thread
  // knows, is at the SSD after it, and perhaps what was stored meanwhile; a flush of the SSD has to follow.
  GPUNVME_NOINLINE Status clean(u64 first, u64 pages, u32 number, u32 step) {
    Status result = status::kSuccess;
    u32 frames = c->set_count * kWays;
    GPUNVME_ROLLED
    for (u32 f = number * warp::kWidth + warp::lane(); f < frames; f += step * warp::kWidth) {
      Status s = clean(first, pages, f);
      result = failed(s) && !failed(result) ? s : result;
    }
    return result;
  }

 private:
  enum class What : u32 {
    kNothing,  // no frame can be had now
    kAgain,    // somebody else was faster
    kHold,     // the page is there
    kJoin,     // somebody reads it
    kFill,     // the frame is this page's, and it is to be read
    kClean,    // the frame could be had if it were written
    kTake,     // the frame has a page that nobody waits for
  };

  struct Claim {
    What what;
    u32 frame;
    u64 page;  // kClean: that is to be written; kFill: that was in the frame, or ~0
  };

  // What became of the commands of a page; if data may still move: of which queue pair and which command.
  struct Moved {
    Status status;
    Queue* queue;
    u32 command;
  };

  // What the next command of a page moves.
  struct Piece {
    detail::Rest rest;
    const DeviceSet* set;
    u64 bytes;
    u32 blocks;
    bool hole;
    bool last;
  };

  // After so many rounds, of so many tries each, a page waits like one that finds no frame.
  static constexpr u32 kRounds = 8;
  static constexpr u32 kTries = 8;

  // Of the slots of a queue pair parked commands have at most one in so many, even if all of them are its.
  static constexpr u32 kParkedShare = 4;

  // One frame, once: what has been stored since then may be stored for ever.
  GPUNVME_FN Status clean(u64 first, u64 pages, u32 f) {
    GPUNVME_ROLLED
    for (;;) {
      u64 word = mem::load(c->word(f));
      u64 state = frame::state(word);
      bool dirty = state == frame::kValid && (word & frame::kDirty) != 0;
      if (frame::tag(word) == 0 || frame::tag(word) - 1 - first >= pages ||
          (!dirty && state != frame::kCleaning && state != frame::kStuck)) {
        return status::kSuccess;
      }
      if (state == frame::kStuck && is_stuck_for_now(f)) {
        return status::kTimeout;
      }
      u64 cleaning = word + frame::change(frame::kValid, frame::kCleaning) - frame::kDirty + 1;
      // Acquire: what was stored comes before the write.
      if (dirty && (word & frame::kReferences) < frame::kMostReferences &&
          mem::compare_exchange_acquire(c->word(f), word, cleaning) == word) {
        Moved moved = move(opcode::kWrite, frame::tag(word) - 1, f);
        cleaned(f, moved);
        return moved.status;
      }
      if (stopped()) {
        return status::kStopped;
      }
      pause(200);
    }
  }

  GPUNVME_FN u64 page_bytes() const { return 1ull << c->page_shift; }

  GPUNVME_FN detail::SetTarget<kHelps> target(const DeviceSet& set) const {
    // By the warp's place: the lanes of a warp have one queue pair, whatever their pages.
    return {CallersQueues<kHelps>{storage_, warp::place()}, set, c->buffer};
  }

  // What a claim has come to. Behind a failure no reference is left.
  GPUNVME_FN Fetched settle(const Claim& claim, u64 tag, const Moved& moved, bool overwrite) {
    Fetched result = {moved.status, claim.frame, false};
    switch (claim.what) {
      case What::kHold:
        return result;
      case What::kFill:
        result.fresh = overwrite;
        break;
      case What::kJoin:
        result.status = join(claim.frame, tag);
        break;
      case What::kClean:
        // What the SSD says of another page's write is not this page's failure: there are other frames.
        result.status = (moved.status & status::kMade) != 0 ? moved.status : static_cast<Status>(status::kPending);
        return result;
      case What::kTake:
        take(claim.frame);
        result.status = status::kPending;
        return result;
      case What::kAgain:
        result.status = status::kPending;
        return result;
      default:
        result.status = status::kBusy;
        return result;
    }
    if (failed(result.status)) {
      release(claim.frame, 1);
    }
    return result;
  }

  // Takes a reference to a page where it is or will be, or a frame for it. Who takes none is a prefetch, and writes nothing. Waits for
  // nobody: lanes that try at once hold each other up no longer than this takes.
  GPUNVME_FN Claim try_claim(u64 tag, u32 references) {
    u32 set = c->set_of(tag);
    u64* words = c->sets[set].word;
    SetSide& side = c->sides[set];
    detail::Survey s = detail::survey(words, tag, 0);
    if (s.match != kWays) {
      u64 seen = mem::fetch_add_acquire(words + s.match, references);
      if (frame::tag(seen) == tag && (seen & frame::kReferences) < frame::kMostReferences) {
        return {frame::readable(seen) ? What::kHold : What::kJoin, set * kWays + s.match, 0};
      }
      mem::add(words + s.match, 0 - static_cast<u64>(references));
      return {What::kAgain, 0, 0};
    }
    if (s.choice == detail::choice::kNone && !s.lost) {
      mem::count(&c->conflicts);
      return {What::kNothing, 0, 0};
    }
    if (mem::compare_exchange(&side.lock, 0u, 1u) != 0) {
      return {What::kAgain, 0, 0};
    }
    // Acquire, and below release: what the last holder has put into the words.
    mem::fence_gpu();
    Claim claim = evict(set, tag, references);
    mem::fence_gpu();
    mem::store(&side.lock, 0u);
    return claim;
  }

  // Under the set's lock: gives a frame that nobody holds to the page, or says what has to be done first.
  GPUNVME_FN Claim evict(u32 set, u64 tag, u32 references) {
    using namespace detail;
    u64* words = c->sets[set].word;
    SetSide& side = c->sides[set];
    Survey s = survey(words, tag, side.hand);
    if (s.lost) {
      regain(set);
      s = survey(words, tag, side.hand);
    }
    u32 f = set * kWays + s.way;
    if (s.match != kWays) {
      return {What::kAgain, 0, 0};
    }
    if (s.choice != choice::kNone) {
      // If nothing comes of it, the next look begins behind it.
      side.hand = (s.way + 1) % kWays;
    }
    if (frame::state(s.word) == frame::kFilling && s.choice == choice::kLast) {
      bool idle = references != 0 && mem::load(&c->infos[f].parked) != 0;
      return {idle ? What::kTake : What::kNothing, f, 0};
    }
    bool dirty = s.choice == choice::kColdDirty || s.choice == choice::kLast;
    if (s.choice == choice::kNone || (dirty && references == 0)) {
      mem::count(&c->conflicts);
      return {What::kNothing, 0, 0};
    }
    u64 page = frame::tag(s.word) - 1;
    u64 next = dirty ? frame::word(page + 1, frame::kCleaning, 1) : frame::word(tag, frame::kFilling, references);
    // Acquire: all who held the page have loaded what they wanted, and what they have stored comes before the write.
    if (mem::compare_exchange_acquire(words + s.way, s.word, next) != s.word) {
      return {What::kAgain, 0, 0};
    }
    if (s.choice == choice::kHot || s.choice == choice::kLast) {
      all_unused(words);
    }
    if (dirty) {
      return {What::kClean, f, page};
    }
    mem::count(&c->misses);
    if (s.choice != choice::kEmpty) {
      mem::count(&c->evictions);
    }
    return {What::kFill, f, page};
  }

  // What became of a page that came from the host tier, else kPending. What was in its frame goes there.
  GPUNVME_FN Status by_tier(const Claim& claim, u64 tag) {
    if (c->tier == nullptr) {
      return status::kPending;
    }
    detail::keep_in_tier(c, claim.page, claim.frame);
    return detail::take_from_tier(c, tag - 1, claim.frame);
  }

  // Moves a page between its source and a frame, a command at a time: most pages take one.
  GPUNVME_FN Moved move(u32 op, u64 page, u32 f) {
    Moved moved = {status::kSuccess, nullptr, 0};
    GPUNVME_ROLLED
    for (u64 done = 0;;) {
      Piece piece = this->piece(page, done, f);
      if (piece.hole) {
        detail::put(c->data(f) + done, nullptr, piece.bytes);
      } else {
        detail::SetTarget<kHelps> target = this->target(*piece.set);
        Command command;
        Status s = target.describe(op, piece.rest, piece.blocks, command);
        if (!failed(s)) {
          CallersQueue<kHelps> queue = target.queue(piece.rest);
          s = queue.execute(command, moved.command);
          moved.queue = queue.pair();
        }
        moved.status = s;
      }
      done += piece.bytes;
      if (failed(moved.status) || piece.last) {
        return moved;
      }
    }
  }

  // What follows the first bytes of a page.
  GPUNVME_FN Piece piece(u64 page, u64 done, u32 f) const {
    const PageSource& source = c->source(page);
    const DeviceFile& file = *source.file;
    const DeviceSet& set = *file.set;
    u64 block = 1ull << set.block_shift;
    u64 at = ((page - source.first) << c->page_shift) + done;
    u64 end = at - done + page_bytes();
    u32 i = file.find(at);
    u64 next = i + 1 < file.extent_count ? file.extents[i + 1].offset : (file.size + block - 1) & ~(block - 1);
    u64 bytes = (next < end ? next : end) - at;
    u64 first = file.extents[i].block;
    Piece piece = {{0, 0, 0}, &set, bytes, 0, first == FileExtent::kHole, false};
    if (!piece.hole) {
      u64 offset = c->buffer_offset + (static_cast<u64>(f) << c->page_shift) + done;
      u64 blocks = (bytes + block - 1) >> set.block_shift;
      piece.rest = detail::Rest{first + ((at - file.extents[i].offset) >> set.block_shift), blocks, offset};
      piece.blocks = target(set).next(piece.rest);
      u64 most = static_cast<u64>(piece.blocks) << set.block_shift;
      piece.bytes = most < bytes ? most : bytes;
    }
    piece.last = at + piece.bytes >= end || at + piece.bytes >= file.size;
    return piece;
  }

  // Whether data may still move: nobody knows what became of the command.
  GPUNVME_FN static bool may_move(const Moved& moved) {
    return moved.command != 0 && (moved.status == status::kTimeout || moved.status == status::kStopped);
  }

  // The end of a read, which is a failure if the page is not what it was. References that others have taken meanwhile are kept.
  GPUNVME_FN void publish(u32 f, u64 tag, Moved& moved) {
    if (c->verifies != 0 && !failed(moved.status)) {
      moved.status = detail::verify(c, tag - 1, f);
    }
    u64 change = frame::change(frame::kFilling, frame::kValid);
    if (failed(moved.status)) {
      bool lost = may_move(moved);
      end(f, moved);
      if (moved.status != status::kBusy && moved.status != status::kCorrupt) {
        mem::count(lost ? &c->lost : &c->read_failures);
      }
      change = frame::change(frame::kFilling, lost ? frame::kLost : frame::kFailed) - (tag << frame::kTagShift);
    } else {
      mem::count(&c->reads);
    }
    // Release: the data, which this thread has seen, and how it ended.
    mem::fence_gpu();
    mem::add(c->word(f), change);
  }

  // The end of a write, and of the reference for it.
  GPUNVME_FN void cleaned(u32 f, const Moved& moved) {
    u64 to = frame::kValid;
    if (failed(moved.status)) {
      bool stuck = may_move(moved);
      end(f, moved);
      if (moved.status != status::kBusy) {
        mem::count(stuck ? &c->lost : &c->write_failures);
      }
      to = stuck ? frame::kStuck : frame::kValid;
      // As if used: others are tried before it is written again.
      mem::set_bits(c->word(f), frame::kDirty | frame::kUsed);
    } else {
      mem::count(&c->writes);
      if (c->verifies != 0) {
        // What is stored meanwhile is written, and told, once more before the page goes.
        detail::note_written(c, f);
      }
    }
    mem::fence_gpu();
    mem::add(c->word(f), frame::change(frame::kCleaning, to) - 1);
  }

  GPUNVME_FN void end(u32 f, const Moved& moved) {
    c->infos[f].queue = moved.queue;
    mem::store(&c->infos[f].end, moved.status | moved.command << 16);
  }

  // Under the set's lock: frames whose data moves no more are as if the command had failed.
  GPUNVME_NOINLINE void regain(u32 set) {
    // Acquire: whoever ended a frame had said by which command.
    mem::fence_gpu();
    GPUNVME_ROLLED
    for (u32 way = 0; way < kWays; way++) {
      u32 f = set * kWays + way;
      u64 state = frame::state(mem::load(c->word(f)));
      if ((state == frame::kStuck || state == frame::kLost) &&
          is_over(c->infos[f].queue, mem::load(&c->infos[f].end) >> 16)) {
        mem::add(c->word(f), state == frame::kStuck ? frame::change(frame::kStuck, frame::kValid)
                                                          : frame::change(frame::kLost, frame::kFailed));
        mem::count(&c->regained);
      }
    }
  }

  // Whether a command that was given up moves no more data.
  GPUNVME_FN bool is_over(Queue* q, u32 command) const {
    // Where nobody waits at that queue pair, nobody has looked for its completions.
    return CallersQueue<kHelps>::is_over(q, command) ||
           (CallersQueue<kHelps>(q, storage_.stop).poll() && CallersQueue<kHelps>::is_over(q, command));
  }

  // Whether the write that timed out may still read this frame; if not, the frame is taken back. False also if that is not known at
  // this moment. Under the set's lock, like every look at it: the frame could be given back and be stuck again in between, and
  // by another command.
  GPUNVME_FN bool is_stuck_for_now(u32 f) {
    u32 set = f / kWays;
    u32* lock = &c->sides[set].lock;
    if (mem::compare_exchange(lock, 0u, 1u) != 0) {
      return false;
    }
    mem::fence_gpu();
    regain(set);
    bool stuck = frame::state(mem::load(c->word(f))) == frame::kStuck;
    mem::fence_gpu();
    mem::store(lock, 0u);
    return stuck;
  }

  // Waits for a page that somebody reads. A failure is that of the read; kBusy: it may be tried again.
  GPUNVME_FN Status join(u32 f, u64 tag) {
    mem::count(&c->joined);
    u64 limit = nanos() + 2 * c->timeout_ns;
    GPUNVME_ROLLED
    for (u32 tries = 1;; tries++) {
      u64 word = mem::load(c->word(f));
      if (frame::state(word) != frame::kFilling) {
        // Acquire: the data, or how it ended.
        mem::fence_gpu();
        Status s = frame::tag(word) == tag ? static_cast<Status>(status::kSuccess) : mem::load(&c->infos[f].end) & 0xFFFF;
        // Not read, through no fault of the page's: the host has recovered the queue, or has stopped the other kernel.
        bool again = s == status::kAbortedByHost || (s == status::kStopped && !stopped());
        return again ? static_cast<Status>(status::kBusy) : s;
      }
      if (mem::load(&c->infos[f].parked) != 0) {
        take(f);
      } else {
        pause(tries < 8 ? 100 : 400);
      }
      if ((tries & 31) == 0 && (nanos() > limit || stopped())) {
        return status::kBusy;
      }
    }
  }

  // Ends the read of a page for which nobody waits, unless somebody else does now.
  GPUNVME_FN void take(u32 f) {
    u32 command = mem::load(&c->infos[f].parked);
    if (command == 0 || mem::compare_exchange(&c->infos[f].parked, command, 0u) != command) {
      return;
    }
    // Acquire: the queue.
    mem::fence_gpu();
    ParkedToken parked = {c->infos[f].queue, command};
    Token token = Token::adopt(parked);
    Status s = CallersQueue<kHelps>(token.queue(), storage_.stop).wait(token);
    mem::add(&c->parked, ~0ull);
    // In a kernel that is to go on: the host has recovered the queue pair since, so that no data moves any more. The slot says so,
    // too: each SSD may have a stop word of its own, and this one's may have been written first.
    bool gone = s == status::kStopped && !stopped() && CallersQueue<kHelps>::is_over(parked.queue, command & 0xFFFF);
    s = gone ? static_cast<Status>(status::kAbortedByHost) : s;
    Moved moved = {s, c->infos[f].queue, command};
    publish(f, frame::tag(mem::load(c->word(f))), moved);
  }

  PageCache* const c;
  const Storage& storage_;
};

}  // namespace gpunvme
