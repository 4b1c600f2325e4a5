#pragma once
// A tier of host memory behind a cache of pages in GPU memory: pages that left the cache, and are missed often. Pages of arrays that
// somebody stores to are never here. So what is here is what the SSD has, and two frames may have the same page. Nobody waits here:
// a page that cannot be had or kept at once is read from the SSD.
#include "frames.cuh"

namespace gpunvme {

struct alignas(128) HostTier {
  // ---- fixed: written by the host
  FrameSet* sets;    // as of the cache: free, on the way (of a copy) or valid
  u32* hands;        // of each set: where the next frame is looked for first
  u64* uses;         // how often pages were missed of late: 12 counters of 4 bits each, above the age in which they were last counted
  char* memory;      // of the host, and GPUs reach it; frame f is at f << page_shift
  u32 set_count;
  u32 use_mask;      // words of `uses`, a power of two, less 1
  u32 age_shift;     // an age ends after 1 << age_shift misses: all counters are halved
  u32 page_shift;
  u32 margin;        // a page is missed at least so much more often than the one that makes room for it, or than none
  u32 reserved0[3];

  // ---- counters, in pages
  u64 misses;        // of the cache, of pages that may be here: the clock of the ages
  u64 hits;          // of them that were here
  u64 inserts;
  u64 evictions;     // of pages that made room for another
  u64 refusals;      // pages that left the cache and were missed too seldom
  u64 reserved1[3];

  // Counts a miss.
  GPUNVME_FN void note(u64 tag) {
    mem::count(&misses);
    u32 least = uses_of(tag);
    GPUNVME_ROLLED
    for (u32 i = 0; i < kPlaces; i++) {
      Count c = count(tag, i);
      // The other counts other pages, too. One that is lost to another thread's does not matter.
      if (c.uses() == least && least != kMostUses) {
        mem::compare_exchange(c.word, c.seen, c.aged + (1ull << c.shift));
      }
    }
  }

  // Copies a page to the caller's memory, if it is here.
  GPUNVME_FN bool take(u64 tag, char* to) {
    u32 set = detail::set_of(tag, set_count);
    u64* words = sets[set].word;
    u32 way = detail::find(words, tag);
    if (way == kWays) {
      return false;
    }
    // Acquire: the data. Looked at again, because the frame may have become another page's.
    u64 seen = mem::fetch_add_acquire(words + way, 1ull);
    bool here = frame::tag(seen) == tag && frame::state(seen) == frame::kValid;
    if (here) {
      mem::set_bits(words + way, frame::kUsed);
      mem::count(&hits);
      mem::copy_page(to, data(set, way), 1u << page_shift);
    }
    // Release: the loads come before the next page's data.
    mem::fence_gpu();
    mem::add(words + way, ~0ull);
    return here;
  }

  // Keeps a page that has left the cache, if it is missed more often than the one that would make room for it. What is `from` there
  // nobody stores to meanwhile.
  GPUNVME_FN void keep(u64 tag, const char* from) {
    u32 set = detail::set_of(tag, set_count);
    u64* words = sets[set].word;
    detail::Survey s = detail::survey(words, tag, mem::load(hands + set));
    if (s.match != kWays || s.choice == detail::choice::kNone) {
      return;
    }
    bool empty = s.choice == detail::choice::kEmpty;
    mem::store(hands + set, (s.way + 1) % kWays);
    u32 used = uses_of(tag);
    if (used < margin || (!empty && used < uses_of(frame::tag(s.word)) + margin)) {
      mem::count(&refusals);
      return;
    }
    // Acquire: all who have copied the last page from here have done so.
    if (mem::compare_exchange_acquire(words + s.way, s.word, frame::word(tag, frame::kFilling, 1)) != s.word) {
      return;
    }
    mem::count(&inserts);
    if (!empty) {
      mem::count(&evictions);
    }
    if (s.choice == detail::choice::kHot) {
      detail::all_unused(words);
    }
    mem::copy_page(data(set, s.way), from, 1u << page_shift);
    // Release: the data.
    mem::fence_gpu();
    mem::add(words + s.way, frame::change(frame::kFilling, frame::kValid) - 1);
  }

  // Gives a page up, unless somebody copies it at this moment.
  GPUNVME_FN void drop(u64 tag) {
    u64* words = sets[detail::set_of(tag, set_count)].word;
    u32 way = detail::find(words, tag);
    u64 seen = way != kWays ? mem::load(words + way) : 0;
    if (frame::tag(seen) == tag && !frame::held(seen)) {
      mem::compare_exchange(words + way, seen, 0ull);
    }
  }

 private:
  static constexpr u32 kCounters = 12;
  static constexpr u32 kMostUses = 15;
  static constexpr u32 kPlaces = 2;  // in which each page is counted
  static constexpr u32 kEarlier = 0xFFFF - 16;  // so many ages and more: another thread has seen the clock later than this one

  // How often a page was missed of late; more, where others were counted in both of its places.
  GPUNVME_FN u32 uses_of(u64 tag) const {
    u32 least = kMostUses;
    GPUNVME_ROLLED
    for (u32 i = 0; i < kPlaces; i++) {
      u32 these = count(tag, i).uses();
      least = these < least ? these : least;
    }
    return least;
  }

  // One of the places in which a page is counted, with others.
  struct Count {
    u64* word;
    u64 seen;
    u64 aged;   // what it is now
    u32 shift;

    GPUNVME_FN u32 uses() const { return static_cast<u32>(aged >> shift) & kMostUses; }
  };

  GPUNVME_FN Count count(u64 tag, u32 place) const {
    u64 mixed = (tag * kPlaces + place) * 0x9E3779B97F4A7C15ull;
    mixed = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93ull;
    Count c = {uses + (static_cast<u32>(mixed >> 32) & use_mask), 0, 0, 0};
    c.shift = 16 + 4 * static_cast<u32>((mixed & 0xFFFFFFFF) * kCounters >> 32);
    c.seen = mem::load(c.word);
    u32 now = static_cast<u32>(mem::load(&misses) >> age_shift) & 0xFFFF;
    u32 ages = (now - static_cast<u32>(c.seen)) & 0xFFFF;
    if (ages > kEarlier) {
      now -= ages;  // the other's age, as the counters have it
      ages = 0;
    }
    // Halved as often: of each four bits those that came from the next four are cut off.
    u64 halved = ages > 3 ? 0 : c.seen >> 16 >> ages & 0x111111111111ull * (kMostUses >> ages);
    c.aged = halved << 16 | (now & 0xFFFF);
    return c;
  }

  GPUNVME_FN char* data(u32 set, u32 way) const {
    return memory + ((static_cast<u64>(set) * kWays + way) << page_shift);
  }
};
static_assert(sizeof(HostTier) == 128, "layout shared with the host");

}  // namespace gpunvme
