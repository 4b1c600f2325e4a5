#pragma once
// Frames for pages, in sets of which each page can be in one only, and how one is found for a page. The cache in GPU memory has
// them, and its host tier.
#include "memory.cuh"

namespace gpunvme {

// The word of a frame: which page it has, what is happening to it, and how many hold it. All of it changes by atomic operations,
// so that whoever adds a reference learns in the same moment what it is a reference to.
namespace frame {
constexpr u64 kReferences = (1ull << 20) - 1;
constexpr u64 kMostReferences = 1ull << 19;  // more are refused; all threads of a GPU that add one at once fit above
constexpr u64 kUsed = 1ull << 20;            // since all frames of the set were
constexpr u64 kDirty = 1ull << 21;           // stored to since the last write to the SSD began
constexpr u32 kStateShift = 22;
constexpr u32 kTagShift = 25;
constexpr u64 kMostPages = (1ull << 39) - 1;

constexpr u64 kFree = 0;      // never used: the whole word is 0, but for references that are about to be given back
constexpr u64 kFilling = 1;   // its data is on the way
constexpr u64 kValid = 2;
constexpr u64 kCleaning = 3;  // valid, and being written to the SSD
constexpr u64 kStuck = 4;     // valid, and a write of it timed out: the SSD may still read it
constexpr u64 kFailed = 5;    // its data did not come; FrameInfo::end says why
constexpr u64 kLost = 6;      // and may still come: nobody gets the frame before that is over

// 0 is nobody's tag: a frame that failed or is lost has it, so that the page is looked for elsewhere at once.
GPUNVME_FN u64 tag(u64 word) { return word >> kTagShift; }
GPUNVME_FN u64 state(u64 word) { return word >> kStateShift & 7; }
GPUNVME_FN u64 word(u64 tag, u64 state, u64 references) { return tag << kTagShift | state << kStateShift | references; }
GPUNVME_FN bool held(u64 word) { return (word & kReferences) != 0; }
GPUNVME_FN bool readable(u64 word) { return state(word) - kValid <= kStuck - kValid; }
// What is added to a word to change its state, whatever happens to the rest of it meanwhile.
GPUNVME_FN u64 change(u64 from, u64 to) { return (to - from) << kStateShift; }
}  // namespace frame

constexpr u32 kWays = 16;

// The frames in which a page may be: one line of memory.
struct alignas(128) FrameSet {
  u64 word[kWays];
};
static_assert(sizeof(FrameSet) == 128, "layout shared with the host");

namespace detail {

// The set in which a page can be. Of pages in a row each set gets as many, where there are 200 sets or more: the multiplication spreads them
// evenly, in whatever order those of each 512 come. They come in another order, since in theirs the pages of a warp are in sets of one
// pattern: two warps that met in a set met in nearly all, and warps that pinned their pages held each other up for good.
GPUNVME_FN u32 set_of(u64 tag, u32 set_count) {
  u32 page = static_cast<u32>(tag) + static_cast<u32>(tag >> 32) * 0x85EBCA6Bu;
  u32 block = page >> 9;
  u32 place = (page + (block * 0x85EBCA6Bu >> 23)) * 0x165u & 511;
  u32 mixed = (block << 9 | (place ^ place >> 4)) * 0x9E3779B1u;
  return static_cast<u32>(static_cast<u64>(mixed) * set_count >> 32);
}

// The way that has a page, or kWays.
GPUNVME_FN u32 find(const u64* words, u64 tag) {
  u32 found = kWays;
  GPUNVME_ROLLED
  for (u32 base = 0; base < kWays && found == kWays; base += 8) {
    Words pairs[4];
    GPUNVME_UNROLLED(4)
    for (u32 i = 0; i < 4; i++) {
      pairs[i] = mem::load(reinterpret_cast<const Words*>(words + base) + i);
    }
    GPUNVME_UNROLLED(4)
    for (u32 i = 0; i < 4; i++) {
      found = frame::tag(pairs[i].x) == tag ? base + 2 * i : found;
      found = frame::tag(pairs[i].y) == tag ? base + 2 * i + 1 : found;
    }
  }
  return found;
}
// How gladly a frame is taken for another page, the lowest first.
namespace choice {
constexpr u32 kEmpty = 0;
constexpr u32 kCold = 1;       // clean, and not used since the last time that all were
constexpr u32 kColdDirty = 2;
constexpr u32 kHot = 3;
constexpr u32 kLast = 4;       // used and dirty, or on its way without anybody who waits for it
constexpr u32 kNone = 5;

GPUNVME_FN u32 of(u64 word) {
  u64 state = frame::state(word);
  u32 valid = kCold + ((word & frame::kUsed) != 0 ? 2 : 0) + ((word & frame::kDirty) != 0 ? 1 : 0);
  u32 any = state == frame::kValid ? valid
            : state == frame::kFilling ? kLast
            : state == frame::kFree || state == frame::kFailed ? kEmpty
                                                               : kNone;
  return frame::held(word) ? kNone : any;
}
}  // namespace choice

// All frames of a set were used: from now on it counts which are used again.
GPUNVME_FN void all_unused(u64* words) {
  GPUNVME_ROLLED
  for (u32 way = 0; way < kWays; way++) {
    mem::clear_bits(words + way, frame::kUsed);
  }
}

// What one look at a set has found.
struct Survey {
  u32 match;   // the way that has the page, or kWays
  u32 choice;  // of the best frame for it
  u32 way;     // of that
  u64 word;    // of that
  bool lost;   // whether there are frames that are kLost or kStuck
};

GPUNVME_FN Survey survey(const u64* words, u64 tag, u32 hand) {
  Survey s = {kWays, choice::kNone, 0, 0, false};
  u32 best = choice::kNone * kWays;
  GPUNVME_ROLLED
  for (u32 base = 0; base < kWays; base += 4) {
    u64 some[4];
    GPUNVME_UNROLLED(2)
    for (u32 i = 0; i < 4; i += 2) {
      Words pair = mem::load(reinterpret_cast<const Words*>(words + base + i));
      some[i] = pair.x;
      some[i + 1] = pair.y;
    }
    GPUNVME_UNROLLED(4)
    for (u32 i = 0; i < 4; i++) {
      u32 way = base + i;
      u64 state = frame::state(some[i]);
      s.match = frame::tag(some[i]) == tag ? way : s.match;
      s.lost = s.lost || state == frame::kLost || state == frame::kStuck;
      // Of equal ones the one that the hand comes to first.
      u32 rank = choice::of(some[i]) * kWays + (way - hand) % kWays;
      if (rank < best) {
        best = rank;
        s.way = way;
        s.word = some[i];
      }
    }
  }
  s.choice = best / kWays;
  return s;
}

}  // namespace detail

}  // namespace gpunvme
