// Drives the page cache of the device library from many threads against SSDs that really move data, out of order, late or not at all,
// and checks every byte that is read, and all bytes of the SSDs in the end.
//
//   cache_stress seconds SECONDS [SEED]     rounds of random shapes, with and without faults, for about this long
//   cache_stress accesses ACCESSES [SEED]   as many calls that read or store elements as that, without faults
//
// Exits with 0 if nothing was wrong. Built with sanitizers by test.d/twin.sh.
#include "unsettled.h"

#include "cached_sources.h"
#include "rounds.h"

namespace {

using namespace twin;

enum Role : u32 {
  kReads, kStores, kPrefetches, kPins, kOverwrites, kCleans, kMixed, kRoles,
  kStoresOn,  // to one page, without a pause, as long as there is one that
  kCleansOn   // cleans it some times
};

struct Shape {
  u32 sets;
  u32 page_shift;
  u32 queues;        // of each SSD
  u32 depth;
  u32 servers;       // threads that serve; 0: the callers do
  std::vector<Role> roles;  // of each thread
  u32 unit_shift;    // of the stripes, in bytes
  u32 other_shift;   // of the second SSD's blocks
  u32 max_blocks;    // of a command
  u32 burst;         // calls in a row on the same page, at most
  bool watched;      // nobody stores to a page that is being written to the SSD, and ThreadSanitizer watches the writes, too
  u64 accesses;      // of each thread; 0: see `lasts`
  u64 lasts;         // nanoseconds
  u64 timeout_ns;
  Faults faults;
  bool bad;          // one page cannot be written
  u32 unsettled;     // see mem::unsettled
  bool verifies;     // only where it is watched: nobody stores to a page whose sum is made
  u32 tier_sets;     // of the host tier; 0: none. Then one source can be stored to only after a while, as if by a second kernel
  u32 tier_words;    // of counters there: where there are few, and ages are short, chance decides what is kept
  u32 tier_age;      // log2 of misses in one
  u32 tier_margin;   // 0: nearly everything is kept there, and soon replaced
  bool tier_only;    // pages that may be there, and no others

  bool faulty() const { return faults.drop != 0; }
  u32 frames() const { return sets * kWays; }
};

constexpr u32 kCleanings = 30;  // that one who kCleansOn makes

struct Wide {
  u64 a;
  u64 b;
};

// An array over a part of a source.
struct View {
  Source* source;
  u64 begin;       // in the source
  u32 element;     // bytes: 4, 8 or 16
  DeviceArray array;
};

struct Counts {
  u64 accesses = 0;   // calls
  u64 elements = 0;   // that were compared
  u64 acquires = 0;   // calls that look for a page
  u64 failures = 0;
  u64 overwrites = 0;  // of pages that were not there
  u64 prefetches = 0;  // pages that were asked for

  void add(const Counts& o) {
    accesses += o.accesses;
    elements += o.elements;
    acquires += o.acquires;
    failures += o.failures;
    overwrites += o.overwrites;
    prefetches += o.prefetches;
  }
};

struct Totals {
  Counts calls;
  u64 rounds = 0;
  u64 hits = 0;
  u64 misses = 0;
  u64 joined = 0;
  u64 prefetched = 0;
  u64 evictions = 0;
  u64 writes = 0;
  u64 lost = 0;
  u64 regained = 0;
  u64 tier_hits = 0;
  u64 tier_inserts = 0;
  u64 tier_evictions = 0;
  u64 corrupt = 0;  // because the test had damaged them
};

// A host tier and its memory.
class Tier {
 public:
  Tier(const Shape& shape)
      : tier{}, sets_(shape.tier_sets), hands_(shape.tier_sets), uses_(shape.tier_words),
        memory_(shape.tier_sets * kWays << shape.page_shift) {
    tier.sets = sets_.data();
    tier.hands = hands_.data();
    tier.uses = uses_.data();
    tier.memory = memory_.data();
    tier.set_count = shape.tier_sets;
    tier.use_mask = shape.tier_words - 1;
    tier.age_shift = shape.tier_age;
    tier.page_shift = shape.page_shift;
    tier.margin = shape.tier_margin;
  }

  u32 frames() const { return static_cast<u32>(sets_.size()) * kWays; }
  u64 word(u32 f) const { return mem::load(sets_[f / kWays].word + f % kWays); }
  char* data(u32 f) const { return tier.memory + (static_cast<u64>(f) << tier.page_shift); }

  HostTier tier;

 private:
  std::vector<FrameSet> sets_;
  std::vector<u32> hands_;
  std::vector<u64> uses_;
  std::vector<char> memory_;
};

// Two SSDs, sources on them, a cache and arrays.
class Machine {
 public:
  Machine(const Shape& shape, u64 seed)
      : shape(shape), page_bytes(1ull << shape.page_shift), tier(shape), random_(seed), bus_(kUnused + shape.frames() * page_bytes / kBusPage + kUnused),
        frame_sets_(shape.sets), sides_(shape.sets), infos_(shape.frames()) {
    lay_out();
    for (u32 i = 0; i < 2; i++) {
      for (u32 j = 0; j < shape.queues; j++) {
        u32 n = i * shape.queues + j;
        (i == 0 ? first_queues : second_queues)
            .push_back(std::make_unique<QueueMemory>(n + 1, shape.depth, true, shape.timeout_ns, &stop_, 0, &queues_[n]));
      }
      namespaces_[i] = {};
      namespaces_[i].blocks = disks[i]->size() >> disks[i]->block_shift();
      namespaces_[i].nsid = i + 1;
      namespaces_[i].block_shift = disks[i]->block_shift();
      namespaces_[i].max_blocks = 65536;
      namespaces_[i].queue_count = shape.queues;
      namespaces_[i].queues = &queues_[i * shape.queues];
      u64 bus = reinterpret_cast<u64>(bus_.data());
      buffers_[i] = {bus_.size(), bus, nullptr, nullptr, bus_.data(), 12, 0, {}};
    }
    storage = {Storage::kVersion, 2, namespaces_, buffers_, 2, 0, &stop_, {}};
    describe_cache();
  }

  u32 queue_count() const { return 2 * shape.queues; }
  QueueMemory& queue(u32 i) { return i < shape.queues ? *first_queues[i] : *second_queues[i - shape.queues]; }

  // The bus address of a page that is no frame.
  u64 buffer() { return reinterpret_cast<u64>(bus_.data()); }

  u64 word(u32 f) { return mem::load(cache.word(f)); }
  u32 frame_of(const void* data) const {
    return static_cast<u32>(static_cast<u64>(static_cast<const char*>(data) - cache.memory) >> shape.page_shift);
  }

  // The source that has a page of the cache, and where.
  Source& source_of(u64 page) {
    for (auto& s : sources) {
      if (page - s->first < s->pages) {
        return *s;
      }
    }
    violation("a page that no source has", page, 0);
    return *sources[0];
  }

  // Has stores to a source allowed that was read only: the host makes another array of it.
  void open_source(u32 number) {
    sources[number]->writable = true;
    described_[number].tiered = 0;
    for (View& v : views) {
      v.array.writable = v.source->writable;
    }
  }

  void check_unused() {
    for (u32 d = 0; d < 2; d++) {
      for (u64 i = 0; i < taken_[d].size(); i++) {
        if (!taken_[d][i] && std::memcmp(disks[d]->data() + i * kGrain, &begun_[d][i * kGrain], kGrain) != 0) {
          violation("blocks that no source has were written: SSD, byte", d, i * kGrain);
        }
      }
    }
  }

  const Shape& shape;
  const u64 page_bytes;
  std::unique_ptr<Disk> disks[2];
  std::vector<std::unique_ptr<QueueMemory>> first_queues;   // of the first SSD
  std::vector<std::unique_ptr<QueueMemory>> second_queues;
  std::vector<std::unique_ptr<Source>> sources;
  std::deque<View> views;
  Storage storage;
  PageCache cache;
  Tier tier;
  u64 pages = 0;
  std::atomic<u32> cleaners{0};  // that have not ended
  std::atomic<u64> stores{0};    // of those who kStoresOn, in bursts

 private:
  static constexpr u64 kUnused = 2;  // pages of the buffer before and behind the frames

  // Bytes of an SSD that follow each other, with some in between that nobody has.
  u64 place(u32 disk, u64 bytes) {
    u64 at = used_[disk];
    used_[disk] = (at + bytes + 2 * kBusPage - 1) & ~static_cast<u64>(kBusPage - 1);
    return at;
  }

  struct Plan {
    std::vector<SetMember> members;
    u32 block_shift;
    u32 unit_shift;
    u64 size;
    std::vector<FileExtent> extents;
    bool writable;
  };

  // A set on one SSD (0 or 1) or on both, of so many bytes.
  Plan plan(u32 on, u64 bytes) {
    Plan p = {{}, on == 0 ? 9u : shape.other_shift, 40, bytes, {{0, 0}}, true};
    if (on != 2) {
      u64 at = place(on, bytes);
      p.members.push_back({at >> (on == 0 ? 9 : shape.other_shift), on, 0});
      return p;
    }
    u64 row = 2ull << std::max(shape.unit_shift, p.block_shift);
    u64 each = (bytes + row - 1) / row * row / 2;
    for (u32 d = 0; d < 2; d++) {
      p.members.push_back({place(d, each) >> (d == 0 ? 9 : shape.other_shift), d, 0});
    }
    p.unit_shift = std::max(shape.unit_shift, p.block_shift) - p.block_shift;
    return p;
  }

  // Cuts a file into extents on a set of more blocks, in any order.
  void cut(Plan& p, u64 size, bool holes) {
    u64 block = 1ull << p.block_shift;
    u64 left = p.size >> p.block_shift;
    p.size = size;
    p.extents.clear();
    std::vector<u64> lengths;
    for (u64 at = 0; at < size;) {
      u64 blocks = 1 + random_() % (random_() % 3 == 0 ? 3 : 4 * page_bytes / block);
      lengths.push_back(blocks);
      p.extents.push_back({at, 0});
      at += blocks * block;
    }
    std::vector<size_t> order;
    for (size_t i = 0; i < lengths.size(); i++) {
      order.push_back(i);
    }
    std::shuffle(order.begin(), order.end(), random_);
    u64 next = 0;
    for (size_t i : order) {
      if (holes && random_() % 4 == 0) {
        p.extents[i].block = FileExtent::kHole;
        continue;
      }
      p.extents[i].block = next;
      next += lengths[i];
    }
    if (next > left) {
      violation("a test that lays out more than there is", next, left);
    }
  }

  void lay_out() {
    u64 all = 16ull * shape.frames();
    std::vector<Plan> plans;
    plans.push_back(plan(0, all / 16 * 5 * page_bytes));
    plans.push_back(plan(2, all / 16 * 5 * page_bytes));
    plans.back().writable = shape.tier_sets == 0;
    u64 file = all / 16 * 3 * page_bytes;
    // Behind the last extent's begin there is room for its length.
    plans.push_back(plan(2, file + 5 * page_bytes));
    cut(plans.back(), file - 1 - random_() % page_bytes, true);
    plans.back().writable = false;
    plans.push_back(plan(1, file + 5 * page_bytes));
    cut(plans.back(), file - (random_() % 8 * page_bytes / 8 & ~((1ull << shape.other_shift) - 1)), false);
    for (u32 d = 0; d < 2; d++) {
      disks[d] = std::make_unique<Disk>(d + 1, d == 0 ? 9 : shape.other_shift, used_[d], bus_, shape.watched, random_());
      begun_[d].assign(disks[d]->data(), disks[d]->data() + used_[d]);
      taken_.emplace_back(used_[d] / kGrain);
    }
    for (Plan& p : plans) {
      sources.push_back(std::make_unique<Source>(std::vector<Disk*>{disks[0].get(), disks[1].get()}, p.members, p.block_shift,
                                                 p.unit_shift, shape.max_blocks, p.size, p.extents, p.writable));
      sources.back()->tiered = shape.tier_sets != 0 && !p.writable;
      sources.back()->begin(pages, shape.page_shift, taken_);
      pages += sources.back()->pages;
    }
    u64 whole = sources[0]->size;
    view(0, 0, whole, 8);
    view(0, page_bytes / 2 + 4, whole / 2, 4);
    view(0, page_bytes, whole / 3 + 16, 16);
    view(1, 0, sources[1]->size, 16);
    view(2, 0, sources[2]->size, 4);
    view(3, 0, sources[3]->size, 8);
  }

  void view(u32 source, u64 begin, u64 bytes, u32 element) {
    Source& s = *sources[source];
    views.push_back({&s, begin, element, {&cache, s.first + begin / page_bytes, begin % page_bytes, bytes, s.writable, element, {}}});
  }

  void describe_cache() {
    for (auto& s : sources) {
      described_.push_back(s->described());
    }
    cache = {};
    cache.sets = frame_sets_.data();
    cache.sides = sides_.data();
    cache.infos = infos_.data();
    cache.buffer_offset = kUnused * kBusPage;
    cache.memory = bus_.data() + cache.buffer_offset;
    cache.storage = &storage;
    cache.sources = described_.data();
    cache.source_count = static_cast<u32>(described_.size());
    cache.set_count = shape.sets;
    cache.page_shift = shape.page_shift;
    // Where they are not counted nothing orders the threads that share a page but what has to.
    cache.counts = random_() % 2;
    cache.tier = shape.tier_sets != 0 ? &tier.tier : nullptr;
    cache.verifies = shape.verifies;
    cache.timeout_ns = shape.faulty() ? 2 * shape.timeout_ns : kForever;
  }

  std::mt19937_64 random_;
  BusMemory bus_;
  u64 used_[2] = {kBusPage, kBusPage};
  std::vector<char> begun_[2];              // what the SSDs had
  std::vector<std::vector<bool>> taken_;    // grains of each that sources have
  u32 stop_ = 0;
  Queue queues_[16] = {};
  Namespace namespaces_[2];
  Buffer buffers_[2];
  std::vector<FrameSet> frame_sets_;
  std::vector<SetSide> sides_;
  std::vector<FrameInfo> infos_;
  std::vector<PageSource> described_;
};

// One thread of a kernel.
template <bool kHelps>
class Worker {
 public:
  Worker(Machine& machine, Role role, u64 seed) : m_(machine), role_(role), random_(seed) {}

  Counts run() {
    if (role_ >= kRoles) {
      goes_on();
      return counts_;
    }
    u64 end = nanos() + m_.shape.lasts;
    while (violations == 0 && (m_.shape.accesses != 0 ? counts_.accesses < m_.shape.accesses : nanos() < end)) {
      View& v = m_.views[random_() % m_.views.size()];
      if (m_.shape.tier_only && !v.source->tiered) {
        continue;
      }
      if (v.element == 4) {
        turn<u32>(v);
      } else if (v.element == 8) {
        turn<u64>(v);
      } else {
        turn<Wide>(v);
      }
    }
    return counts_;
  }

 private:
  // Elements of an array in one page: from `first` on, which is at byte `at` of the source.
  template <class T>
  struct Range {
    u64 first;
    u64 count;
    u64 at;
  };

  template <class T>
  using Elements = Array<T, kHelps>;

  // However long it takes: the watchdog sees to that.
  void goes_on() {
    View& v = m_.views[0];
    if (role_ == kCleansOn) {
      for (u32 i = 0; i < kCleanings; i++) {
        // When there is something to clean.
        for (u64 before = m_.stores; m_.stores == before;) {
          std::this_thread::yield();
        }
        good(CachedPages<kHelps>(&m_.cache).clean(v.array.first, 1, 0, 1));
      }
      m_.cleaners--;
    }
    Elements<u64> a(&v.array);
    while (role_ == kStoresOn && m_.cleaners != 0) {
      stores(v, a, range<u64>(v, 0));
      m_.stores++;
    }
  }

  template <class T>
  void turn(View& v) {
    // Some pages are wanted often: a few, or more than there are frames, which are in the tier.
    u64 pages = (v.array.offset + v.array.bytes + m_.page_bytes - 1) >> m_.shape.page_shift;
    u64 hot = v.source->tiered ? m_.shape.frames() * 3ull / 2 : std::max<u64>(1, m_.shape.frames() / 10);
    u64 page = random_() % 4 != 0 ? random_() % std::min(hot, pages) : random_() % pages;
    Range<T> r = range<T>(v, page);
    if (r.count == 0) {
      return;
    }
    Elements<T> a(&v.array);
    switch (role_ == kMixed ? static_cast<Role>(random_() % kMixed) : role_) {
      case kReads:
        return reads(v, a, r);
      case kStores:
        return v.array.writable != 0 ? stores(v, a, r) : reads(v, a, r);
      case kPrefetches:
        a.prefetch(r.first + random_() % r.count, 1 + random_() % (3 * m_.page_bytes / sizeof(T)));
        counts_.prefetches += 4;
        return reads(v, a, r);
      case kPins:
        return random_() % 8 == 0 ? looks_on(a, r) : pins(v, a, r);
      case kOverwrites:
        return v.array.writable != 0 ? overwrites(v, a, r) : pins(v, a, r);
      default:
        return cleans(v, a, page);
    }
  }

  template <class T>
  Range<T> range(const View& v, u64 page) {
    u64 in = v.array.offset;
    u64 from = std::max(page << m_.shape.page_shift, in);
    u64 to = std::min((page + 1) << m_.shape.page_shift, in + v.array.bytes / sizeof(T) * sizeof(T));
    from = std::min(from, to);
    return {(from - in) / sizeof(T), (to - from) / sizeof(T), v.begin + from - in};
  }

  // Whether a call was successful; it has to be where nothing fails.
  bool good(Status s, bool cleans = false) {
    if (!failed(s)) {
      return true;
    }
    counts_.failures++;
    if (m_.shape.bad && cleans && s == Disk::kBad) {
      return false;
    }
    if (!m_.shape.faulty() || ((s & status::kMade) != 0 && s != status::kTimeout && s != status::kBusy)) {
      violation("a call that fails with this status", s, 0);
    }
    return false;
  }

  template <class T>
  void compare(const View& v, u64 at, const T* is, u64 count) {
    counts_.elements += count;
    const char* should = &v.source->model[at];
    if (std::memcmp(is, should, count * sizeof(T)) != 0) {
      u64 i = 0;
      while (std::memcmp(is + i, should + i * sizeof(T), sizeof(T)) == 0) {
        i++;
      }
      u64 page = v.source->first + (at + i * sizeof(T)) / m_.page_bytes;
      violation("an element with other bytes than were stored last: page, byte in it", page, (at + i * sizeof(T)) % m_.page_bytes);
    }
  }

  template <class T>
  T value() {
    T v;
    for (u32 i = 0; i < sizeof v; i += 4) {
      u32 word = static_cast<u32>(random_());
      std::memcpy(reinterpret_cast<char*>(&v) + i, &word, 4);
    }
    return v;
  }

  template <class T>
  void reads(const View& v, Elements<T>& a, const Range<T>& r) {
    for (u64 n = 1 + random_() % m_.shape.burst; n != 0; n--) {
      u64 i = random_() % r.count;
      u64 at = r.at + i * sizeof(T);
      Locked lock(*v.source, at, sizeof(T), false);
      if (!lock) {
        continue;
      }
      counts_.accesses++;
      counts_.acquires++;
      T value;
      Status s;
      if (!failed(a.status()) && random_() % 2 == 0) {
        value = a[r.first + i];
        s = a.status();
      } else {
        s = a.get(r.first + i, value);
      }
      if (good(s)) {
        compare(v, at, &value, 1);
      } else if (!failed(a.status())) {
        violation("a failure that the array has forgotten", s, 0);
      }
    }
  }

  // Whether this thread, which holds a page, may store to it. See Shape::watched.
  bool may_store(const void* data) {
    u64 state = frame::state(m_.word(m_.frame_of(data)));
    return !m_.shape.watched || (state != frame::kCleaning && state != frame::kStuck);
  }

  template <class T>
  void stores(View& v, Elements<T>& a, const Range<T>& r) {
    for (u64 n = 1 + random_() % m_.shape.burst; n != 0; n--) {
      u64 i = random_() % r.count;
      u64 at = r.at + i * sizeof(T);
      Locked lock(*v.source, at, sizeof(T), true);
      if (!lock) {
        continue;
      }
      counts_.accesses++;
      counts_.acquires++;
      T value = this->value<T>();
      if (!m_.shape.watched) {
        // One that fails has stored nothing.
        if (good(a.store(r.first + i, value))) {
          std::memcpy(&v.source->model[at], &value, sizeof(T));
        }
        continue;
      }
      Span<T, kHelps> span = a.pin(r.first + i, 1);
      if (span.size() == 0) {
        good(a.status());
        return;
      }
      if (!may_store(span.data())) {
        continue;
      }
      if (random_() % 2 == 0) {
        counts_.acquires++;
        check("a store to a page that is held", a.store(r.first + i, value), status::kSuccess);
      } else {
        *span.mutable_data() = value;
      }
      std::memcpy(&v.source->model[at], &value, sizeof(T));
    }
  }

  template <class T>
  void pins(View& v, Elements<T>& a, const Range<T>& r) {
    u64 i = random_() % r.count;
    u64 n = 1 + random_() % (random_() % 2 == 0 ? 8 : r.count + 3);
    u64 should = std::min(n, r.count - i);
    u64 at = r.at + i * sizeof(T);
    bool stores = v.array.writable != 0 && random_() % 2 == 0;
    Locked lock(*v.source, at, should * sizeof(T), stores);
    if (!lock) {
      return;
    }
    counts_.accesses++;
    counts_.acquires++;
    Span<T, kHelps> span = a.pin(r.first + i, n);
    if (span.size() == 0) {
      good(a.status());
      return;
    }
    check("elements of a span", span.size(), should);
    compare(v, at, span.data(), should);
    if (random_() % 4 == 0) {
      // Waits for others while it holds one.
      View& other = m_.views[3];
      Elements<Wide> b(&other.array);
      Range<Wide> few = range<Wide>(other, random_() % other.source->pages);
      reads(other, b, few);
      compare(v, at, span.data(), should);
    }
    if (stores && may_store(span.data())) {
      for (u32 times = 1 + static_cast<u32>(random_() % 4); times != 0; times--) {
        u64 j = random_() % should;
        T value = this->value<T>();
        span.mutable_data()[j] = value;
        std::memcpy(&v.source->model[at + j * sizeof(T)], &value, sizeof(T));
      }
    }
    if (random_() % 2 == 0) {
      Span<T, kHelps> moved(std::move(span));
      compare(v, at, moved.data(), should);
    }
  }

  // Holds a page that others store to, and looks at nothing in it.
  template <class T>
  void looks_on(Elements<T>& a, const Range<T>& r) {
    counts_.accesses++;
    counts_.acquires++;
    Span<T, kHelps> span = a.pin(r.first, 1);
    if (span.size() == 0) {
      good(a.status());
    }
  }

  template <class T>
  void overwrites(View& v, Elements<T>& a, const Range<T>& r) {
    if (r.at % m_.page_bytes != 0) {
      return pins(v, a, r);
    }
    // The array may end in the page: what is behind it is other arrays', and is to stay.
    Locked lock(*v.source, r.at, r.count * sizeof(T), true);
    if (!lock) {
      return;
    }
    counts_.accesses++;
    counts_.acquires++;
    Span<T, kHelps> span = a.pin_to_overwrite(r.first, r.count + random_() % 2);
    if (span.size() == 0) {
      good(a.status());
      return;
    }
    check("elements of a span to overwrite", span.size(), r.count);
    bool fresh = frame::state(m_.word(m_.frame_of(span.data()))) == frame::kFilling;
    counts_.overwrites += fresh;
    if (!fresh && !may_store(span.data())) {
      return;
    }
    for (u64 i = 0; i < r.count; i++) {
      T value = this->value<T>();
      span.mutable_data()[i] = value;
      std::memcpy(&v.source->model[r.at + i * sizeof(T)], &value, sizeof(T));
      if (i == r.count / 2 && random_() % 2 == 0) {
        std::this_thread::yield();
      }
    }
  }

  // All of an array, whoever stores meanwhile; or a few pages to which nobody does, which then are on the SSDs.
  template <class T>
  void cleans(View& v, Elements<T>& a, u64 page) {
    u32 parts = 1 + static_cast<u32>(random_() % 3);
    if (!m_.shape.watched && random_() % 4 == 0) {
      for (u32 i = 0; i < parts; i++) {
        good(a.clean(i, parts), true);
      }
      return;
    }
    u64 first = v.array.first - v.source->first + page;
    u64 pages = std::min<u64>(1 + random_() % 3, v.source->pages - first);
    Locked lock(*v.source, first << m_.shape.page_shift, pages << m_.shape.page_shift, false);
    if (!lock) {
      return;
    }
    CachedPages<kHelps> cached(&m_.cache);
    bool all = true;
    for (u32 i = 0; i < parts; i++) {
      all &= good(cached.clean(v.source->first + first, pages, i, parts), true);
    }
    u64 wrong = 0;
    if (all && !v.source->is_written(first << m_.shape.page_shift, pages << m_.shape.page_shift, wrong)) {
      violation("what was stored before a page was cleaned is not on the SSD: page, byte in it",
                v.source->first + wrong / m_.page_bytes, wrong % m_.page_bytes);
    }
  }

  Machine& m_;
  const Role role_;
  std::mt19937_64 random_;
  Counts counts_;
};

class Round {
 public:
  Round(const Shape& shape, u64 seed, Totals& totals) : shape_(shape), seed_(seed), totals_(totals), m_(shape, seed) {}

  void run() {
    mem::unsettled = shape_.unsettled;
    Counts counts;
    std::vector<std::unique_ptr<Controller>> controllers;
    controllers.push_back(std::make_unique<Controller>(m_.first_queues, *m_.disks[0], shape_.faults, seed_, true));
    controllers.push_back(std::make_unique<Controller>(m_.second_queues, *m_.disks[1], shape_.faults, seed_ + 100, true));
    if (shape_.bad) {
      m_.disks[0]->spoil(m_.sources[0]->members()[0].slba * kGrain + kGrain);
    }
    call(counts);
    if (shape_.tier_sets != 0) {
      m_.open_source(1);
      call(counts);
    }
    take_parked();
    for (auto& c : controllers) {
      c->clean();
    }
    m_.disks[0]->heal();
    for (u32 i = 0; i < m_.queue_count(); i++) {
      m_.queue(i).queue().timeout_ns = kForever;
    }
    m_.cache.timeout_ns = kForever;
    u64 dropped = 0;
    for (u32 i = 0; i < m_.queue_count(); i++) {
      Responder& r = controllers[i / shape_.queues]->of(i % shape_.queues);
      drain(m_.queue(i), i < shape_.queues ? 1 : 2, r);
      dropped += r.dropped();
    }
    Status cleaned = CachedPages<true>(&m_.cache).clean(0, m_.pages, 0, 1);
    check_stuck();
    regain();
    check("pages that are not what they were", m_.cache.corrupt, 0);
    damage();
    for (auto& c : controllers) {
      c->end();
    }
    m_.disks[0]->settle(true);
    m_.disks[1]->settle(true);
    check_frames(dropped, cleaned);
    check_tier();
    check_counters(counts);
    check_sums();
    m_.check_unused();
    sum(counts);
  }

 private:
  void call(Counts& counts) {
    std::vector<Counts> of_thread(shape_.roles.size());
    std::vector<std::thread> threads;
    u32 callers = static_cast<u32>(shape_.roles.size());
    m_.cleaners = static_cast<u32>(std::count(shape_.roles.begin(), shape_.roles.end(), kCleansOn));
    for (u32 i = 0; i < shape_.servers; i++) {
      threads.emplace_back([this, i, &callers] {
        // Both SSDs' queue pairs are one array.
        Namespace all = m_.storage.namespaces[0];
        all.queue_count = m_.queue_count();
        serve(m_.storage, all, i, shape_.servers, &callers);
      });
    }
    for (size_t i = 0; i < shape_.roles.size(); i++) {
      threads.emplace_back([this, i, &callers, &of_thread] {
        of_thread[i] = shape_.servers == 0 ? Worker<true>(m_, shape_.roles[i], seed_ * 1000 + i).run()
                                           : Worker<false>(m_, shape_.roles[i], seed_ * 1000 + i).run();
        leave(&callers);
      });
    }
    for (std::thread& t : threads) {
      t.join();
    }
    for (const Counts& c : of_thread) {
      counts.add(c);
    }
  }

  // Prefetched pages for which nobody has come.
  void take_parked() {
    CachedPages<true> pages(&m_.cache);
    for (u32 f = 0; f < shape_.frames(); f++) {
      u64 word = m_.word(f);
      if (frame::state(word) != frame::kFilling) {
        continue;
      }
      if (mem::load(&m_.cache.infos[f].parked) == 0) {
        violation("a page that nobody will end: frame, word", f, word);
        continue;
      }
      Fetched fetched = pages.fetch(frame::tag(word) - 1, false);
      if (!failed(fetched.status)) {
        pages.release(fetched.frame, 1);
      }
    }
  }

  // Takes what has arrived since the callers left.
  void drain(QueueMemory& memory, u32 nsid, Responder& r) {
    SharedQueue q(&memory.queue());
    Queue& queue = memory.queue();
    for (u64 end = nanos() + kForever; nanos() < end;) {
      // When this one has been answered the controller has seen all earlier ones.
      Status s = q.execute({opcode::kRead, nsid, 0, 1, 0, m_.buffer(), 0, 0});
      u32 laps = 2 * queue.cq_mask() + 1;
      if (!failed(s) && r.settled() && ((service::head(mem::load(queue.service_word())) - r.posted()) & laps) == 0) {
        return;
      }
      std::this_thread::yield();
    }
    violation("completions that nobody takes", queue.cq_head, r.posted());
  }

  // Frames come back when somebody needs one in their sets.
  void regain() {
    CachedPages<true> pages(&m_.cache);
    std::vector<u32> fetched(shape_.sets);
    for (u64 page = 0; page < m_.pages; page++) {
      u32 set = m_.cache.set_of(page + 1);
      if (fetched[set] < 3 * kWays) {
        fetched[set]++;
        Fetched got = pages.fetch(page, false);
        if (failed(got.status)) {
          // There may be no frame at all.
          check("a page that is not read though nothing fails any more", got.status, status::kBusy);
        } else {
          pages.release(got.frame, 1);
        }
      }
    }
  }

  // A page of the tier that is not in the cache has another bit.
  void damage() {
    for (u32 f = 0; shape_.verifies && f < m_.tier.frames(); f++) {
      u64 tag = frame::tag(m_.tier.word(f));
      if (tag == 0 || m_.source_of(tag - 1).writable ||
          detail::find(m_.cache.sets[m_.cache.set_of(tag)].word, tag) != kWays) {
        continue;
      }
      CachedPages<true> pages(&m_.cache);
      m_.tier.data(f)[5] ^= 4;
      Fetched got = pages.fetch(tag - 1, false);
      if (got.status == status::kBusy) {
        return;  // all frames of the set are gone
      }
      check("what becomes of a damaged page", got.status, status::kCorrupt);
      check("damaged pages", m_.cache.corrupt, 1);
      got = pages.fetch(tag - 1, false);
      if (check("what becomes of it then", got.status, status::kSuccess)) {
        check_frame(got.frame, tag - 1);
        pages.release(got.frame, 1);
      }
      return;
    }
  }

  // What was cleaned has come back before, if it could.
  void check_stuck() {
    for (u32 f = 0; f < shape_.frames(); f++) {
      const FrameInfo& info = m_.cache.infos[f];
      if (frame::state(m_.word(f)) == frame::kStuck && SharedQueue::is_over(info.queue, info.end >> 16)) {
        violation("a frame that is stuck for nothing: frame, word", f, m_.word(f));
      }
    }
  }

  void check_frames(u64 dropped, Status cleaned) {
    std::vector<bool> stuck(m_.pages);
    std::set<u64> tags;
    u64 gone = 0;
    for (u32 f = 0; f < shape_.frames(); f++) {
      u64 word = m_.word(f);
      u64 state = frame::state(word);
      u64 tag = frame::tag(word);
      check("references that nobody has", word & frame::kReferences, 0);
      if (state == frame::kFilling || state == frame::kCleaning || state > frame::kLost) {
        violation("a frame that never ends: frame, word", f, word);
      }
      if (frame::readable(word) != (tag != 0)) {
        violation("a tag that does not go with the state: frame, word", f, word);
      }
      if (tag != 0 && (!tags.insert(tag).second || m_.cache.set_of(tag) != f / kWays || tag > m_.pages)) {
        violation("a page in two frames, or in a wrong one: frame, word", f, word);
      }
      if (state == frame::kValid && (word & frame::kDirty) != 0) {
        violation("a page that was not cleaned: frame, word", f, word);
      }
      gone += state == frame::kLost || state == frame::kStuck;
      if (state == frame::kStuck && tag <= m_.pages) {
        stuck[tag - 1] = true;
      }
      if (frame::readable(word)) {
        check_frame(f, tag - 1);
      }
    }
    for (u32 i = 0; i < shape_.sets; i++) {
      check("locks that are held", m_.cache.sides[i].lock, 0);
    }
    bool any = std::find(stuck.begin(), stuck.end(), true) != stuck.end();
    check("cleaned in the end", cleaned, any ? status::kTimeout : status::kSuccess);
    check("frames that are gone, and commands that were never answered", gone, dropped);
    check("frames that were lost, and what became of them", m_.cache.lost, m_.cache.regained + gone);
    for (auto& s : m_.sources) {
      for (u64 p = 0; p < s->pages; p++) {
        u64 wrong = 0;
        if (!stuck[s->first + p] && !s->is_written(p * m_.page_bytes, m_.page_bytes, wrong)) {
          violation("the SSDs do not have what was stored: page, byte in it", s->first + p, wrong % m_.page_bytes);
        }
      }
    }
  }

  void check_tier() {
    u64 valid = 0;
    for (u32 f = 0; f < m_.tier.frames(); f++) {
      u64 word = m_.tier.word(f);
      u64 tag = frame::tag(word);
      if (word == 0) {
        continue;
      }
      valid++;
      if (frame::state(word) != frame::kValid || frame::held(word) || tag - 1 >= m_.pages ||
          detail::set_of(tag, shape_.tier_sets) != f / kWays) {
        violation("a frame of the tier that never ends, or is in a wrong set: frame, word", f, word);
        continue;
      }
      Source& s = m_.source_of(tag - 1);
      u64 at = (tag - 1 - s.first) * m_.page_bytes;
      // What became writable later is not looked for any more.
      if (!s.writable && std::memcmp(m_.tier.data(f), &s.model[at], std::min(m_.page_bytes, s.size - at)) != 0) {
        violation("a page of the tier that is not the SSD's: frame, page", f, tag - 1);
      }
    }
    check("pages that came to the tier, and where they went", m_.tier.tier.inserts,
          m_.tier.tier.evictions + valid + m_.cache.corrupt);
    if (m_.tier.tier.hits > m_.tier.tier.misses) {
      violation("hits in the tier, and misses", m_.tier.tier.hits, m_.tier.tier.misses);
    }
  }

  void check_frame(u32 f, u64 page) {
    Source& s = m_.source_of(page);
    u64 at = (page - s.first) * m_.page_bytes;
    if (std::memcmp(m_.cache.data(f), &s.model[at], std::min(m_.page_bytes, s.size - at)) != 0) {
      violation("a page that is not what was stored: frame, page", f, page);
    }
  }

  // What was recorded is what is there.
  void check_sums() {
    for (auto& s : m_.sources) {
      for (u64 page = 0; shape_.verifies && page < s->pages; page++) {
        u64 tag = s->first + page + 1;
        const u64* words = m_.cache.sets[m_.cache.set_of(tag)].word;
        u32 way = detail::find(words, tag);
        // A page whose write timed out may be on the SSD, and is written again before it is read.
        bool stuck = way != kWays && frame::state(words[way]) == frame::kStuck;
        if (!stuck && s->sums[page] != 0 && s->sums[page] != s->sum(page, shape_.page_shift)) {
          violation("a sum that is not the page's: page, sum", tag - 1, s->sums[page]);
        }
      }
    }
  }

  void check_counters(const Counts& counts) {
    PageCache& c = m_.cache;
    u64 acquires = 0;
    for (u32 i = 0; i < shape_.sets; i++) {
      acquires += c.sides[i].acquires;
    }
    check("acquires, and calls", acquires, c.counts != 0 ? counts.acquires : 0);
    u64 timeouts = 0;
    for (u32 i = 0; i < m_.queue_count(); i++) {
      Queue& q = m_.queue(i).queue();
      timeouts += q.timeouts;
      check("slots that are free or quarantined", m_.queue(i).free_count() + q.quarantined, shape_.depth);
    }
    check("frames that were lost, and commands that expired", c.lost, timeouts);
    check("prefetched pages for which nobody came", c.parked, 0);
    u64 came = c.reads + m_.tier.tier.hits - c.corrupt + counts.overwrites;
    u64 ended = came + c.read_failures + c.corrupt;
    // A lost frame was read or written. A prefetch that got no slot counts as nothing; so does any read where commands expire.
    if (c.misses < ended || (!shape_.faulty() && c.misses - ended > counts.prefetches)) {
      violation("misses, and how they ended", c.misses, ended);
    }
    u64 cleaners = static_cast<u64>(std::count(shape_.roles.begin(), shape_.roles.end(), kCleansOn));
    if (cleaners != 0 && c.writes > cleaners * kCleanings + 1) {
      violation("writes of one page, and how often it was cleaned", c.writes, cleaners * kCleanings);
    }
    u64 valid = 0;
    for (u32 f = 0; f < shape_.frames(); f++) {
      valid += frame::readable(m_.word(f));
    }
    check("pages that came, and where they went", came, c.evictions + valid);
    if (!shape_.faulty()) {
      check("failures without a fault", c.read_failures + (shape_.bad ? 0 : c.write_failures) + c.lost, 0);
    }
  }

  void sum(const Counts& counts) {
    PageCache& c = m_.cache;
    totals_.calls.add(counts);
    totals_.rounds++;
    u64 missed = c.joined + c.misses - c.prefetched;
    totals_.hits += counts.acquires - std::min(missed, counts.acquires);
    totals_.misses += c.misses;
    totals_.joined += c.joined;
    totals_.prefetched += c.prefetched;
    totals_.evictions += c.evictions;
    totals_.writes += c.writes;
    totals_.lost += c.lost;
    totals_.regained += c.regained;
    totals_.tier_hits += m_.tier.tier.hits;
    totals_.tier_inserts += m_.tier.tier.inserts;
    totals_.tier_evictions += m_.tier.tier.evictions;
    totals_.corrupt += c.corrupt;
  }

  const Shape& shape_;
  const u64 seed_;
  Totals& totals_;
  Machine m_;
};

Shape random_shape(std::mt19937_64& random) {
  Shape s = {};
  s.sets = pick(random, {1u, 1u, 2u, 3u, 8u});
  s.page_shift = pick(random, {12u, 12u, 13u});
  s.queues = 1 + random() % 3;
  s.servers = random() % 2 != 0 ? 1 + random() % 2 : 0;
  u32 threads = 2 + random() % 5;
  for (u32 i = 0; i < threads; i++) {
    s.roles.push_back(random() % 3 == 0 ? kMixed : static_cast<Role>(random() % kRoles));
  }
  s.unit_shift = pick(random, {10u, 11u, 12u, 13u});
  s.other_shift = pick(random, {9u, 12u});
  s.max_blocks = pick(random, {65536u, 65536u, 4u});
  s.burst = pick(random, {1u, 8u, 64u});
  s.watched = random() % 2 == 0;
  s.unsettled = pick(random, {0u, 3u, 20u, 200u});
  s.lasts = kSecond / 4;
  s.verifies = s.watched && random() % 2 == 0;
  s.tier_sets = pick(random, {0u, 1u, 1u, 2u, 16u});
  s.tier_words = pick(random, {1u, 1u, 8u, 256u});
  s.tier_margin = pick(random, {0u, 0u, 2u});
  s.tier_age = pick(random, {3u, 4u, 5u, 10u});
  s.depth = pick(random, {32u, 96u, 160u});
  s.timeout_ns = kForever;
  s.bad = random() % 3 == 0;
  if (random() % 3 != 0) {
    s.bad = false;
    s.timeout_ns = kSecond / 25;
    s.faults = {200, 200, 20, 10, 100, 100, 1};
  }
  return s;
}

void explain(const Shape& s) {
  std::fprintf(stderr, "in a round %s, %s, %s: %u sets, pages of %u, %u queues of depth %u, %u servers, units of %u, blocks of %u, commands of %u, bursts of %u, unsettled %u, tier of %u sets, %u words, ages of %u and a margin of %u, roles",
               s.faulty() ? "with faults" : s.bad ? "with a bad block" : "without faults", s.watched ? "watched" : "unwatched",
               s.verifies ? "verified" : "not verified", s.sets, 1u << s.page_shift, s.queues, s.depth, s.servers,
               1u << s.unit_shift, 1u << s.other_shift, s.max_blocks, s.burst, s.unsettled, s.tier_sets, s.tier_words, 1u << s.tier_age, s.tier_margin);
  for (Role r : s.roles) {
    std::fprintf(stderr, " %u", r);
  }
  std::fprintf(stderr, "\n");
}

// Ends the program when a round does not end.
class Watchdog {
 public:
  Watchdog() : thread_([this] { watch(); }) {}
  ~Watchdog() {
    over_ = true;
    thread_.join();
  }
  void begins(const Shape* shape, u64 seconds) {
    shape_ = shape;
    due_ = nanos() + seconds * kSecond;
  }

 private:
  void watch() {
    while (!over_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      if (nanos() > due_) {
        violation("a round that does not end", 0, 0);
        explain(*shape_.load());
        std::_Exit(1);
      }
    }
  }

  std::atomic<bool> over_{false};
  std::atomic<u64> due_{~0ull};
  std::atomic<const Shape*> shape_{nullptr};
  std::thread thread_;
};

// A kernel prefetches more pages than there are slots, reads another one, and ends. The host makes the queue pair anew, and the next
// kernel reads the pages.
void begin_anew(Shape shape, u64 seed, Totals& totals) {
  shape.sets = 8;
  shape.page_shift = 12;
  shape.max_blocks = 65536;
  shape.tier_sets = 0;
  shape.queues = 1;
  shape.depth = 32;
  shape.timeout_ns = 2 * kSecond;
  Machine m(shape, seed);
  m.cache.timeout_ns = kSecond;
  Controller controller(m.first_queues, *m.disks[0], {}, seed, true);
  View& v = m.views[0];
  u64 in_page = m.page_bytes / sizeof(u64);
  auto has = [&](Array<u64>& a, u64 page) {
    u64 value = a[page * in_page];
    if (failed(a.status()) || std::memcmp(&value, &v.source->model[page * m.page_bytes], sizeof value) != 0) {
      violation("a page that is not read, or wrong, beside prefetched ones: page, status", page, a.status());
    }
    totals.calls.accesses++;
  };
  Array<u64> last(&v.array);
  last.prefetch(0, 2 * shape.depth * in_page);
  u64 prefetched = m.cache.prefetched;
  if (prefetched == 0 || prefetched > shape.depth / 2) {
    violation("pages that were prefetched", prefetched, shape.depth);
  }
  has(last, 3 * shape.depth);
  while (violations == 0 && controller.of(0).posted() != prefetched + 1) {
    std::this_thread::yield();
  }
  controller.make_anew(0);
  m.queue(0).reset();
  Array<u64> next(&v.array);
  for (u64 page = 0; page < prefetched; page++) {
    has(next, page);
  }
  check("prefetched pages for which nobody came", m.cache.parked, 0);
}

void play(const Shape& shape, u64 seed, Totals& totals, Watchdog& watchdog, u64 seconds) {
  watchdog.begins(&shape, seconds);
  Round(shape, seed, totals).run();
  watchdog.begins(nullptr, 1ull << 30);
  if (violations != 0) {
    explain(shape);
  }
}

void seconds(u64 seconds, u64 seed, Totals& totals, Watchdog& watchdog) {
  std::mt19937_64 random(seed);
  u64 end = nanos() + seconds * kSecond;
  Shape on = random_shape(random);
  on.roles = {kStoresOn, kCleansOn, kCleansOn};
  on.watched = false;
  on.bad = false;
  on.tier_sets = 0;
  on.verifies = false;
  on.faults = {};
  on.timeout_ns = kForever;
  play(on, random(), totals, watchdog, 60);
  begin_anew(on, random(), totals);
  // Somebody always copies a page from the tier, and somebody another one to its frame.
  Shape churn = on;
  churn.roles = {kReads, kReads, kReads, kReads, kPrefetches, kReads};
  churn.sets = churn.tier_sets = 1;
  churn.servers = 0;
  churn.tier_words = 8;
  churn.tier_age = 3;
  churn.tier_margin = 0;
  churn.tier_only = true;
  churn.burst = 1;
  churn.unsettled = 3;
  churn.lasts = kSecond;
  play(churn, random(), totals, watchdog, 60);
  while (nanos() < end && violations == 0) {
    Shape shape = random_shape(random);
    play(shape, random(), totals, watchdog, 60);
  }
}

void accesses(u64 accesses, u64 seed, Totals& totals, Watchdog& watchdog) {
  Shape s = {};
  s.sets = 8;
  s.page_shift = 12;
  s.queues = 2;
  s.depth = 160;
  s.roles = {kMixed, kReads, kStores, kMixed};
  s.unit_shift = 12;
  s.other_shift = 9;
  s.max_blocks = 65536;
  s.burst = 400;
  s.unsettled = 200;
  s.tier_words = 1;
  s.timeout_ns = kForever;
  s.accesses = (accesses + 199) / 200;
  play(s, seed, totals, watchdog, 100000);
  // Most by callers that are served: they give way to the controller.
  s.servers = 1;
  s.accesses *= 49;
  play(s, seed + 1, totals, watchdog, 100000);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments a;
  if (!parse(argc, argv, "accesses", a)) {
    return 2;
  }
  Totals t;
  {
    Watchdog watchdog;
    (a.timed ? seconds : accesses)(a.number, a.seed, t, watchdog);
  }
  std::printf(
      "%llu rounds, %llu accesses, %llu elements compared, %llu hits, %llu misses, %llu joined, %llu prefetched, %llu overwritten, "
      "%llu evictions, %llu writes, %llu failures, %llu lost, %llu regained, %llu hits in tiers, %llu inserts, %llu evictions there, "
      "%llu damaged, %u violations\n",
      t.rounds, t.calls.accesses, t.calls.elements, t.hits, t.misses, t.joined, t.prefetched, t.calls.overwrites, t.evictions,
      t.writes, t.calls.failures, t.lost, t.regained, t.tier_hits, t.tier_inserts, t.tier_evictions, t.corrupt, violations.load());
  return violations == 0 && t.calls.accesses != 0 ? 0 : 1;
}
