// Programs over graphs that are larger than GPU memory: offsets and what belongs to vertices are in GPU memory, edges and weights in
// arrays on SSDs. The host launches a kernel for each round (GraphKernels.java). For comparison, the same kernels load edges and
// weights from plain memory; their names end in _plain. Those that end in _traced also note which pages they want.
//
// Edges are visited in two ways. A sweep goes through all pages of edges in their order, and leaves out the edges of vertices that
// are not wanted: a page is read once, and a page without a wanted edge is not read. A frontier names pieces, each the edges of one
// vertex in one page, so that a vertex with millions of edges has many warps.
//
// Lanes take neighbouring edges. Nothing between lanes comes near a call of an array: some of them may have nothing to do there.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

// Layout in GraphLayout.java.
struct GraphArgs {
  const void* edges;    // u32 each, the vertex that it leads to: a DeviceArray, or plain memory
  const void* weights;  // u8 each, above 0; null without
  const u64* offsets;   // of each vertex its first edge, and one more
  struct GraphOutcome* outcome;
  u32* values;          // of each vertex its level, component or distance
  u32* marks;           // of each vertex the round in which it is next, or kFar
  double* ranks;        // of each vertex
  double* next_ranks;   // what they become
  double* shares;       // what a vertex gives to each of those that its edges lead to
  const u64* frontier;  // pieces: the vertex, and in the high half the number of the page among those of its edges
  u64* next_frontier;   // room for `capacity` of them
  u64 frontier_count;
  u64 capacity;
  u64 vertices;
  u64 edge_count;
  u32 page_shift;  // edges of a page, as a power of two
  u32 round;
  u32 near;    // distances below are looked after now, those from here on later
  u32 source;
  double base;     // what a vertex has without any edge to it
  double damping;  // the share of its rank that a vertex gives away
  u32* seen;       // of each page the last round, plus 1, in which it was wanted; kernels whose names end in _traced
  u32* trace;      // room for each page
};

// Cleared by the host, but for `nearest`, before each kernel.
struct GraphOutcome {
  u64 next_count;  // pieces of the next frontier
  u64 edges;       // that were visited
  u32 failure;     // the first one, below
  Status status;   // of a read that failed
  u64 edge;        // at which it failed
  u64 value;       // that is not allowed
  double change;   // of all ranks
  u32 nearest;     // distance of those that are looked after later
  u32 reserved;
  u64 traced;      // pages that were noted
};

namespace {

// The same in GraphKernels.java.
constexpr u32 kReadFailed = 1;
constexpr u32 kNoVertex = 2;
constexpr u32 kNoWeight = 3;
constexpr u32 kTooFar = 4;
constexpr u32 kNoRoom = 5;

constexpr u32 kNone = ~0u;  // no level or distance yet
constexpr u32 kFar = ~0u;   // a mark: to be looked after once `near` is above its distance
constexpr u32 kRetries = 8;

__device__ u64 edge_pages(const GraphArgs& a) { return (a.edge_count + (1ull << a.page_shift) - 1) >> a.page_shift; }
__device__ u64 warps() { return static_cast<u64>(gridDim.x) * block::warps(); }
__device__ u64 this_warp() { return static_cast<u64>(blockIdx.x) * block::warps() + block::index(); }
__device__ u64 threads() { return warps() * warp::kWidth; }
__device__ u64 this_thread() { return this_warp() * warp::kWidth + warp::lane(); }

// What a thread finds, and counts.
class Found {
 public:
  __device__ explicit Found(const GraphArgs& args) : a(args) {}

  // Somebody has failed: what comes now is of no use.
  __device__ bool over() const { return mem::load(&a.outcome->failure) != 0; }

  __device__ void failure(u32 what, u64 edge, u64 value, Status status) {
    if (mem::compare_exchange(&a.outcome->failure, 0u, what) == 0) {
      a.outcome->status = status;
      a.outcome->edge = edge;
      a.outcome->value = value;
    }
  }

  __device__ void visited() { edges_++; }

  // Puts a vertex into the next frontier. Each is there at most once, which is what the room is for.
  __device__ void push(u32 v) {
    u64 begin = a.offsets[v];
    u64 end = a.offsets[v + 1ull];
    if (begin == end) {
      return;
    }
    u32 pieces = static_cast<u32>(((end - 1) >> a.page_shift) - (begin >> a.page_shift)) + 1;
    u64 at = mem::fetch_add(&a.outcome->next_count, static_cast<u64>(pieces));
    if (at + pieces > a.capacity) {
      failure(kNoRoom, begin, at, status::kSuccess);
      return;
    }
    GPUNVME_ROLLED
    for (u32 i = 0; i < pieces; i++) {
      a.next_frontier[at + i] = static_cast<u64>(i) << 32 | v;
    }
  }

  __device__ void done() {
    if (edges_ != 0) {
      mem::add(&a.outcome->edges, edges_);
    }
  }

 private:
  const GraphArgs& a;
  u64 edges_ = 0;
};

// Elements on an SSD. What an SSD says may pass is tried again.
template <class T>
class Stored {
 public:
  __device__ Stored(const GraphArgs&, const void* array, u64) : array_(static_cast<const DeviceArray*>(array)) {}

  __device__ bool get(u64 i, T& value, Found& found) {
    Status s = array_.get(i, value);
    GPUNVME_ROLLED
    for (u32 tries = 0; tries < kRetries && may_retry(s); tries++) {
      s = array_.get(i, value);
    }
    if (failed(s)) {
      found.failure(kReadFailed, i, 0, s);
      return false;
    }
    return true;
  }

 private:
  Array<T> array_;
};

// The same, and notes the pages that are wanted in this round, in the order in which they are first wanted.
template <class T>
class Traced {
 public:
  __device__ Traced(const GraphArgs& args, const void* array, u64 first_page)
      : a(args), first_page_(first_page), stored_(args, array, first_page) {}

  __device__ bool get(u64 i, T& value, Found& found) {
    u64 page = first_page_ + (i >> (a.page_shift + kShift));
    u32 stamp = a.round + 1;
    if (mem::load(a.seen + page) != stamp && mem::exchange(a.seen + page, stamp) != stamp) {
      a.trace[mem::fetch_add(&a.outcome->traced, 1ull)] = static_cast<u32>(page);
    }
    return stored_.get(i, value, found);
  }

 private:
  // A page has this many times as many as it has edges, as a power of two.
  static constexpr u32 kShift = sizeof(T) == 1 ? 2 : 0;

  const GraphArgs& a;
  const u64 first_page_;
  Stored<T> stored_;
};

// The same in memory.
template <class T>
class Plain {
 public:
  __device__ Plain(const GraphArgs&, const void* elements, u64) : elements_(static_cast<const T*>(elements)) {}

  __device__ bool get(u64 i, T& value, Found&) {
    value = elements_[i];
    return true;
  }

 private:
  const T* const elements_;
};

template <template <class> class Elements>
class Edges {
 public:
  __device__ Edges(const GraphArgs& args, Found& found) : a(args), found_(found), array_(args, args.edges, 0) {}

  // Where an edge leads to; false after a failure.
  __device__ bool get(u64 e, u32& to) {
    if (!array_.get(e, to, found_)) {
      return false;
    }
    if (to >= a.vertices) {
      found_.failure(kNoVertex, e, to, status::kSuccess);
      return false;
    }
    found_.visited();
    return true;
  }

 private:
  const GraphArgs& a;
  Found& found_;
  Elements<u32> array_;
};

// The vertex that has edge e: the last whose offset is not above it. It is not before `from`.
__device__ u64 source_of(const GraphArgs& a, u64 e, u64 from) {
  u64 low = from;
  u64 step = 1;
  GPUNVME_ROLLED
  while (low + step < a.vertices && a.offsets[low + step] <= e) {
    low += step;
    step *= 2;
  }
  u64 high = low + step < a.vertices ? low + step : a.vertices;
  GPUNVME_ROLLED
  while (high - low > 1) {
    u64 middle = low + (high - low) / 2;
    if (a.offsets[middle] <= e) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Shows a worker all edges in their order: a page a warp, an edge a lane. A worker says false after a failure. Every other round goes
// from the last page to the first: the cache has those that the round before came to last.
template <class Worker>
__device__ void sweep(const GraphArgs& a, Found& found, Worker& worker) {
  u64 pages = edge_pages(a);
  GPUNVME_ROLLED
  for (u64 i = this_warp(); i < pages && !found.over(); i += warps()) {
    u64 page = (a.round & 1) == 0 ? i : pages - 1 - i;
    u64 end = (page + 1) << a.page_shift;
    end = end < a.edge_count ? end : a.edge_count;
    u64 v = 0;
    u64 after = 0;
    GPUNVME_ROLLED
    for (u64 e = (page << a.page_shift) + warp::lane(); e < end; e += warp::kWidth) {
      if (e >= after) {
        v = source_of(a, e, v);
        after = a.offsets[v + 1];
      }
      if (!worker(static_cast<u32>(v), e)) {
        return;
      }
    }
  }
}

// Shows it the edges of a frontier: a piece a warp, an edge a lane.
template <class Worker>
__device__ void follow(const GraphArgs& a, Found& found, Worker& worker) {
  GPUNVME_ROLLED
  for (u64 i = this_warp(); i < a.frontier_count && !found.over(); i += warps()) {
    u64 piece = a.frontier[i];
    u32 v = static_cast<u32>(piece);
    u64 begin = a.offsets[v];
    u64 end = a.offsets[v + 1ull];
    u64 page = (begin >> a.page_shift) + (piece >> 32);
    u64 first = page << a.page_shift;
    begin = begin < first ? first : begin;
    u64 last = (page + 1) << a.page_shift;
    end = end < last ? end : last;
    GPUNVME_ROLLED
    for (u64 e = begin + warp::lane(); e < end; e += warp::kWidth) {
      if (!worker(v, e)) {
        return;
      }
    }
  }
}

template <bool kSweeps, class Worker>
__device__ void visit(const GraphArgs& a) {
  Found found(a);
  Worker worker(a, found);
  if (kSweeps) {
    sweep(a, found, worker);
  } else {
    follow(a, found, worker);
  }
  found.done();
}

// ---- breadth-first search: values are levels

template <template <class> class Elements>
class Levels {
 public:
  __device__ Levels(const GraphArgs& args, Found& found) : a(args), found_(found), edges_(args, found) {}

  __device__ bool operator()(u32 v, u64 e) {
    u32 to;
    if (mem::load(a.values + v) != a.round) {
      return true;
    }
    if (!edges_.get(e, to)) {
      return false;
    }
    if (mem::load(a.values + to) == kNone && mem::compare_exchange(a.values + to, kNone, a.round + 1) == kNone) {
      found_.push(to);
    }
    return true;
  }

 private:
  const GraphArgs& a;
  Found& found_;
  Edges<Elements> edges_;
};

// ---- shortest paths: values are distances, which only fall

template <template <class> class Elements>
class Distances {
 public:
  __device__ Distances(const GraphArgs& args, Found& found)
      : a(args), found_(found), edges_(args, found), weights_(args, args.weights, edge_pages(args)) {}

  __device__ bool operator()(u32 v, u64 e) {
    u32 to;
    if (mem::load(a.marks + v) != a.round) {
      return true;
    }
    if (!edges_.get(e, to)) {
      return false;
    }
    // No weight is below 1.
    u32 distance = mem::load(a.values + v);
    if (mem::load(a.values + to) <= distance + 1) {
      return true;
    }
    u8 weight;
    if (!weights_.get(e, weight, found_)) {
      return false;
    }
    if (weight == 0) {
      found_.failure(kNoWeight, e, 0, status::kSuccess);
      return false;
    }
    if (distance >= kNone - weight) {
      found_.failure(kTooFar, e, distance, status::kSuccess);
      return false;
    }
    distance += weight;
    if (distance < mem::fetch_min(a.values + to, distance)) {
      mark(to, distance);
    }
    return true;
  }

 private:
  // Whoever found a shorter way marks the vertex. A mark of the next round stays, whoever else has found a longer way meanwhile.
  __device__ void mark(u32 v, u32 distance) {
    if (distance < a.near) {
      if (mem::exchange(a.marks + v, a.round + 1) != a.round + 1) {
        found_.push(v);
      }
      return;
    }
    u32 is = mem::load(a.marks + v);
    if (is != a.round + 1) {
      mem::compare_exchange(a.marks + v, is, kFar);
    }
  }

  const GraphArgs& a;
  Found& found_;
  Edges<Elements> edges_;
  Elements<u8> weights_;
};

// ---- connected components: values are a forest in which no parent has a higher number than its child

// The root of a vertex. On the way, each second one is brought nearer to it: an ancestor takes the place of another, whoever
// else does the same. Numbers fall, so it ends.
__device__ u32 root(u32* parents, u32 v) {
  u32 parent = mem::load(parents + v);
  GPUNVME_ROLLED
  while (parent != v) {
    u32 above = mem::load(parents + parent);
    if (above != parent) {
      mem::store(parents + v, above);
    }
    v = parent;
    parent = above;
  }
  return v;
}

template <template <class> class Elements>
class Components {
 public:
  __device__ Components(const GraphArgs& args, Found& found) : a(args), edges_(args, found) {}

  __device__ bool operator()(u32 v, u64 e) {
    u32 to;
    if (!edges_.get(e, to)) {
      return false;
    }
    // Whoever is not the first to join a root finds a root with a lower number next time.
    u32 one = root(a.values, v);
    u32 other = root(a.values, to);
    GPUNVME_ROLLED
    while (one != other) {
      u32 low = one < other ? one : other;
      u32 high = one < other ? other : one;
      if (mem::compare_exchange(a.values + high, high, low) == high) {
        break;
      }
      one = root(a.values, high);
      other = root(a.values, low);
    }
    return true;
  }

 private:
  const GraphArgs& a;
  Edges<Elements> edges_;
};

// ---- PageRank: a vertex gives its share to each vertex that an edge leads to

template <template <class> class Elements>
class Ranks {
 public:
  __device__ Ranks(const GraphArgs& args, Found& found) : a(args), edges_(args, found) {}

  __device__ bool operator()(u32 v, u64 e) {
    u32 to;
    if (!edges_.get(e, to)) {
      return false;
    }
    mem::add(a.next_ranks + to, a.shares[v]);
    return true;
  }

 private:
  const GraphArgs& a;
  Edges<Elements> edges_;
};

}  // namespace

// The first frontier: the source.
extern "C" __global__ void gpunvme_graph_source(GraphArgs a) {
  if (this_thread() == 0) {
    Found found(a);
    a.values[a.source] = 0;
    if (a.marks != nullptr) {
      a.marks[a.source] = a.round;
    }
    found.push(a.source);
  }
}

#define GRAPH_KERNEL(name, sweeps, Worker)                                                           \
  extern "C" __global__ void __launch_bounds__(256, 1) gpunvme_graph_##name(GraphArgs a) {           \
    visit<sweeps, Worker<Stored>>(a);                                                                \
  }                                                                                                  \
  extern "C" __global__ void __launch_bounds__(256, 1) gpunvme_graph_##name##_traced(GraphArgs a) {  \
    visit<sweeps, Worker<Traced>>(a);                                                                \
  }                                                                                                  \
  extern "C" __global__ void gpunvme_graph_##name##_plain(GraphArgs a) { visit<sweeps, Worker<Plain>>(a); }

GRAPH_KERNEL(levels_sweep, true, Levels)
GRAPH_KERNEL(levels_follow, false, Levels)
GRAPH_KERNEL(distances_sweep, true, Distances)
GRAPH_KERNEL(distances_follow, false, Distances)
GRAPH_KERNEL(components_sweep, true, Components)
GRAPH_KERNEL(ranks_sweep, true, Ranks)

// The next frontier: those that were to wait until `near` is above their distance.
extern "C" __global__ void gpunvme_graph_distances_next(GraphArgs a) {
  Found found(a);
  u32 nearest = kNone;
  for (u64 v = this_thread(); v < a.vertices; v += threads()) {
    if (a.marks[v] != kFar) {
      continue;
    }
    u32 distance = a.values[v];
    if (distance < a.near) {
      a.marks[v] = a.round;
      found.push(static_cast<u32>(v));
    } else {
      nearest = distance < nearest ? distance : nearest;
    }
  }
  mem::fetch_min(&a.outcome->nearest, nearest);
}

// Each vertex is a tree of its own.
extern "C" __global__ void gpunvme_graph_components_begin(GraphArgs a) {
  for (u64 v = this_thread(); v < a.vertices; v += threads()) {
    a.values[v] = static_cast<u32>(v);
  }
}

// A component's number is its lowest vertex.
extern "C" __global__ void gpunvme_graph_components_end(GraphArgs a) {
  for (u64 v = this_thread(); v < a.vertices; v += threads()) {
    mem::store(a.values + v, root(a.values, static_cast<u32>(v)));
  }
}

// In round 0, all have the same rank.
extern "C" __global__ void gpunvme_graph_ranks_begin(GraphArgs a) {
  for (u64 v = this_thread(); v < a.vertices; v += threads()) {
    if (a.round == 0) {
      a.ranks[v] = 1 / static_cast<double>(a.vertices);
    }
    u64 degree = a.offsets[v + 1] - a.offsets[v];
    a.shares[v] = degree == 0 ? 0 : a.damping * a.ranks[v] / static_cast<double>(degree);
    a.next_ranks[v] = a.base;
  }
}

extern "C" __global__ void gpunvme_graph_ranks_end(GraphArgs a) {
  double change = 0;
  for (u64 v = this_thread(); v < a.vertices; v += threads()) {
    double difference = a.next_ranks[v] - a.ranks[v];
    change += difference < 0 ? -difference : difference;
  }
  mem::add(&a.outcome->change, change);
}
