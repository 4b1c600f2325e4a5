// Rows of a matrix on SSDs, by their numbers, through a page cache (DeviceRows): gathered, fetched into the cache, overwritten.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

using i64 = long long;

// What went wrong, of all launches since the host looked. Layout in RowKernels.java.
struct alignas(16) RowTrouble {
  u32 count;   // rows, or lanes' parts of them
  u32 status;  // of the first
  i64 id;      // of the first
};
static_assert(sizeof(RowTrouble) == 16, "layout shared with the host");

// Layout in RowKernels.java.
struct alignas(16) RowArgs {
  const DeviceArray* array;  // of bytes: rows one behind the other
  const i64* ids;            // in any order, some perhaps more than once
  u64 count;                 // of ids
  u64 rows;                  // of the matrix
  u64 row_bytes;
  char* memory;              // count rows, one behind the other
  RowTrouble* trouble;
  u32 ahead;                 // rows that a warp has the SSD read at once, at most kWidth
  u32 lanes;                 // that share the copy of a row: a power of two, at most kWidth
};
static_assert(sizeof(RowArgs) == 64, "layout shared with the host");

namespace {

enum class Use { kGather, kUpdate };

template <class T>
__device__ void copy_as(char* to, const char* from, u32 bytes, u32 lane, u32 lanes) {
  constexpr u32 kAtOnce = 4;  // loads in flight
  u32 count = bytes / sizeof(T);
  T* target = reinterpret_cast<T*>(to);
  const T* source = reinterpret_cast<const T*>(from);
  u32 i = lane;
  GPUNVME_ROLLED
  for (; i + (kAtOnce - 1) * lanes < count; i += kAtOnce * lanes) {
    T loaded[kAtOnce];
    GPUNVME_UNROLLED(4)
    for (u32 k = 0; k < kAtOnce; k++) {
      loaded[k] = source[i + k * lanes];
    }
    GPUNVME_UNROLLED(4)
    for (u32 k = 0; k < kAtOnce; k++) {
      target[i + k * lanes] = loaded[k];
    }
  }
  GPUNVME_ROLLED
  for (; i < count; i += lanes) {
    target[i] = source[i];
  }
}

// A lane's part of bytes that several lanes copy: in the largest units that both addresses and the length allow.
__device__ void copy(char* to, const char* from, u32 bytes, u32 lane, u32 lanes) {
  u64 odd = reinterpret_cast<u64>(to) | reinterpret_cast<u64>(from) | bytes;
  if (odd % 16 == 0) {
    copy_as<Quad>(to, from, bytes, lane, lanes);
  } else if (odd % 4 == 0) {
    copy_as<u32>(to, from, bytes, lane, lanes);
  } else {
    copy_as<u8>(to, from, bytes, lane, lanes);
  }
}

class Rows {
 public:
  __device__ explicit Rows(const RowArgs& args) : a(args) {}

  // Each lane gets the pages of its own row into the cache: those of a warp are read side by side.
  __device__ void fetch(u64 i) {
    i64 id = a.ids[i];
    if (static_cast<u64>(id) >= a.rows) {
      return;  // whoever wants the row says so
    }
    Array<u8> array(a.array);
    u64 end = (static_cast<u64>(id) + 1) * a.row_bytes;
    GPUNVME_ROLLED
    for (u64 at = static_cast<u64>(id) * a.row_bytes; at < end;) {
      Span<u8> part = array.pin(at, end - at);
      if (part.size() == 0) {
        return;  // the same
      }
      at += part.size();
    }
  }

  // A lane's part of a row that several lanes have in common. Each gets the row's pages for itself, so that some may fail and others not.
  template <Use use>
  __device__ void move(u64 i, u32 lane, u32 lanes) {
    i64 id = a.ids[i];
    char* memory = a.memory + i * a.row_bytes;
    if (static_cast<u64>(id) >= a.rows) {
      if (lane == 0) {
        fail<use>(id, status::kArgument, memory);
      }
      return;
    }
    Array<u8> array(a.array);
    u64 first = static_cast<u64>(id) * a.row_bytes;
    GPUNVME_ROLLED
    for (u64 done = 0; done < a.row_bytes;) {
      Span<u8> part = array.pin(first + done, a.row_bytes - done);
      u32 size = part.size();
      if (size == 0) {
        fail<use>(id, array.status(), memory);
        return;
      }
      if (use == Use::kGather) {
        copy(memory + done, reinterpret_cast<const char*>(part.data()), size, lane, lanes);
      } else {
        copy(reinterpret_cast<char*>(part.mutable_data()), memory + done, size, lane, lanes);
      }
      done += size;
    }
  }

 private:
  __device__ void note(i64 id, Status s) {
    if (mem::fetch_add(&a.trouble->count, 1u) == 0) {
      a.trouble->status = s;
      a.trouble->id = id;
    }
  }

  // What did not come is no number that anybody takes for a row's: NaN in floating point, -1 else. Other lanes may copy their parts
  // over it; this one's stays.
  template <Use use>
  __device__ void fail(i64 id, Status s, char* memory) {
    note(id, s);
    GPUNVME_ROLLED
    for (u64 at = 0; use == Use::kGather && at < a.row_bytes; at++) {
      memory[at] = static_cast<char>(0xFF);
    }
  }

  const RowArgs& a;
};

// The rows that this warp has at a time, one time after the other.
template <class Work>
__device__ void each(const RowArgs& a, Work work) {
  u64 warp = static_cast<u64>(blockIdx.x) * block::warps() + block::index();
  u64 step = static_cast<u64>(gridDim.x) * block::warps() * a.ahead;
  GPUNVME_ROLLED
  for (u64 first = warp * a.ahead; first < a.count; first += step) {
    u64 left = a.count - first;
    work(first, static_cast<u32>(left < a.ahead ? left : a.ahead));
  }
}

template <Use use>
__device__ void move_all(const RowArgs& a) {
  Rows rows(a);
  u32 lanes = a.lanes < warp::kWidth ? a.lanes : warp::kWidth;
  each(a, [&](u64 first, u32 count) {
    GPUNVME_ROLLED
    for (u32 i = warp::lane(); i < count; i += warp::kWidth) {
      rows.fetch(first + i);
    }
    // So that the lanes of a row copy it together; none is in a call.
    warp::sync(warp::kFull);
    GPUNVME_ROLLED
    for (u32 i = warp::lane() / lanes; i < count; i += warp::kWidth / lanes) {
      rows.move<use>(first + i, warp::lane() % lanes, lanes);
    }
    warp::sync(warp::kFull);
  });
}

}  // namespace

// 64 registers, and so many warps: what misses need beyond that is in memory, which takes no time beside an SSD's.
extern "C" __global__ void __launch_bounds__(256, 4) gpunvme_gather_rows(RowArgs a) { move_all<Use::kGather>(a); }
extern "C" __global__ void __launch_bounds__(256, 4) gpunvme_update_rows(RowArgs a) { move_all<Use::kUpdate>(a); }

// Beside other kernels: few blocks, for it copies nothing.
extern "C" __global__ void __launch_bounds__(256, 1) gpunvme_fetch_rows(RowArgs a) {
  Rows rows(a);
  each(a, [&](u64 first, u32 count) {
    GPUNVME_ROLLED
    for (u32 i = warp::lane(); i < count; i += warp::kWidth) {
      rows.fetch(first + i);
    }
  });
}
