// What a loader of tensors has the GPU do with what lies in its memory: copies of rows, and checksums. The CPU's compiler
// compiles this too, for a test.
#include "gpunvme/platform.cuh"

using namespace gpunvme;

// Filled in by CudaTensorKernels.
struct RowCopy {
  const char* source;
  char* target;
  u64 source_pitch;  // bytes from a row to the next
  u64 target_pitch;
  u64 vectors;       // of a row, > 0
  u64 rows;          // > 0
};

// Filled in by CudaTensorKernels. Chunks end where addresses are multiples of kChunk, so that only a piece's first can begin
// and only its last can end anywhere.
struct Piece {
  u64 address;
  u64 bytes;  // > 0
  u64 first;  // how many chunks all pieces before it have
};

namespace {

template <u32 Bytes>
struct Vector;

template <>
struct Vector<1> {
  u8 x;
};
template <>
struct alignas(2) Vector<2> {
  u16 x;
};
template <>
struct alignas(4) Vector<4> {
  u32 x;
};
template <>
struct alignas(8) Vector<8> {
  u32 x, y;
};
template <>
struct alignas(16) Vector<16> {
  u32 x, y, z, w;
};

__device__ u64 threads() { return static_cast<u64>(gridDim.x) * blockDim.x; }
__device__ u64 thread() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }

// ------------------------------------------------------------------------------------------- rows

constexpr u32 kAtOnce = 4;  // loads of a thread in flight

// Where in both matrices a thread is. It divides once; from then on it goes down and to the right by the same steps.
template <u32 Bytes>
class Place {
 public:
  __device__ Place(const RowCopy& copy, u64 start, u64 step)
      : c(copy), column(start % c.vectors), right(step % c.vectors) {
    u64 row = start / c.vectors;
    u64 down = step / c.vectors;
    from = row * c.source_pitch + column * Bytes;
    to = row * c.target_pitch + column * Bytes;
    from_step = down * c.source_pitch + right * Bytes;
    to_step = down * c.target_pitch + right * Bytes;
  }

  __device__ Vector<Bytes> load() const { return *reinterpret_cast<const Vector<Bytes>*>(c.source + from); }
  __device__ void store(u64 at, const Vector<Bytes>& v) const { *reinterpret_cast<Vector<Bytes>*>(c.target + at) = v; }
  __device__ u64 target() const { return to; }

  // May leave the matrices by this: then nothing is loaded any more.
  __device__ void next() {
    column += right;
    from += from_step;
    to += to_step;
    if (column >= c.vectors) {
      column -= c.vectors;
      from += c.source_pitch - c.vectors * Bytes;
      to += c.target_pitch - c.vectors * Bytes;
    }
  }

 private:
  const RowCopy& c;
  u64 column;
  const u64 right;
  u64 from;
  u64 to;
  u64 from_step;
  u64 to_step;
};

template <u32 Bytes>
__device__ void copy_rows(const RowCopy& c) {
  u64 all = c.vectors * c.rows;
  u64 step = threads();
  u64 at = thread();
  Place<Bytes> place(c, at, step);
  for (; at + (kAtOnce - 1) * step < all; at += kAtOnce * step) {
    Vector<Bytes> loaded[kAtOnce];
    u64 targets[kAtOnce];
#pragma unroll
    for (u32 i = 0; i < kAtOnce; i++) {
      loaded[i] = place.load();
      targets[i] = place.target();
      place.next();
    }
#pragma unroll
    for (u32 i = 0; i < kAtOnce; i++) {
      place.store(targets[i], loaded[i]);
    }
  }
  for (; at < all; at += step) {
    place.store(place.target(), place.load());
    place.next();
  }
}

// --------------------------------------------------------------------------------------- CRC-32C

constexpr u64 kChunk = 4096;
constexpr u32 kSlices = 16;
constexpr u32 kBytes = 256;              // values of a byte
constexpr u32 kPolynomial = 0x82f63b78;  // Castagnoli's, lowest bit first

// What a byte does to the CRC, with 0 to 15 zero bytes after it.
struct Tables {
  u32 slice[kSlices][kBytes];
};

// All threads of the block.
__device__ void fill(Tables& t) {
  for (u32 value = threadIdx.x; value < kBytes; value += blockDim.x) {
    u32 crc = value;
    for (u32 bit = 0; bit < 8; bit++) {
      crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    }
    t.slice[0][value] = crc;
  }
  __syncthreads();
  for (u32 value = threadIdx.x; value < kBytes; value += blockDim.x) {
    u32 crc = t.slice[0][value];
    for (u32 slice = 1; slice < kSlices; slice++) {
      crc = crc >> 8 ^ t.slice[0][crc & 0xff];
      t.slice[slice][value] = crc;
    }
  }
  __syncthreads();
}

__device__ u32 add_byte(const Tables& t, u32 crc, u8 byte) { return crc >> 8 ^ t.slice[0][(crc ^ byte) & 0xff]; }

// Four bytes that have `after` more behind them.
__device__ u32 slices(const Tables& t, u32 word, u32 after) {
  return t.slice[after + 3][word & 0xff] ^ t.slice[after + 2][word >> 8 & 0xff] ^ t.slice[after + 1][word >> 16 & 0xff] ^
         t.slice[after][word >> 24];
}

__device__ u32 add(const Tables& t, u32 crc, const Vector<16>& v) {
  return slices(t, v.x ^ crc, 12) ^ slices(t, v.y, 8) ^ slices(t, v.z, 4) ^ slices(t, v.w, 0);
}

__device__ u32 crc_of(const Tables& t, u64 at, u64 end) {
  u32 crc = ~0u;
  for (; at < end && at % 16 != 0; at++) {
    crc = add_byte(t, crc, *reinterpret_cast<const u8*>(at));
  }
  // Whole lines of the GPU's cache at once: nobody else wants the rest of them.
  constexpr u32 kLine = 8;
  for (; end - at >= kLine * 16; at += kLine * 16) {
    Vector<16> line[kLine];
#pragma unroll
    for (u32 i = 0; i < kLine; i++) {
      line[i] = reinterpret_cast<const Vector<16>*>(at)[i];
    }
#pragma unroll
    for (u32 i = 0; i < kLine; i++) {
      crc = add(t, crc, line[i]);
    }
  }
  for (; end - at >= 16; at += 16) {
    crc = add(t, crc, *reinterpret_cast<const Vector<16>*>(at));
  }
  for (; at < end; at++) {
    crc = add_byte(t, crc, *reinterpret_cast<const u8*>(at));
  }
  return ~crc;
}

// The last piece that begins with this chunk or before it.
__device__ const Piece& piece_of(const Piece* pieces, u32 count, u64 chunk) {
  u32 low = 0;
  u32 high = count;
  while (high - low > 1) {
    u32 middle = low + (high - low) / 2;
    if (pieces[middle].first <= chunk) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return pieces[low];
}

}  // namespace

// One for each alignment that all of both addresses, both pitches and the width have.
extern "C" __global__ void __launch_bounds__(256) gpunvme_copy_rows_1(RowCopy c) { copy_rows<1>(c); }
extern "C" __global__ void __launch_bounds__(256) gpunvme_copy_rows_2(RowCopy c) { copy_rows<2>(c); }
extern "C" __global__ void __launch_bounds__(256) gpunvme_copy_rows_4(RowCopy c) { copy_rows<4>(c); }
extern "C" __global__ void __launch_bounds__(256) gpunvme_copy_rows_8(RowCopy c) { copy_rows<8>(c); }
extern "C" __global__ void __launch_bounds__(256) gpunvme_copy_rows_16(RowCopy c) { copy_rows<16>(c); }

// The CRC of each chunk of the pieces, in their order. Blocks of any size. Four of them on a multiprocessor are enough to keep
// its shared memory busy; for more, the compiler takes registers away from the lines that are loaded at once.
extern "C" __global__ void __launch_bounds__(256, 4)
    gpunvme_crc32c(const Piece* pieces, u32 count, u32 chunks, u32* crcs) {
  __shared__ Tables tables;
  fill(tables);
  for (u64 chunk = thread(); chunk < chunks; chunk += threads()) {
    const Piece& piece = piece_of(pieces, count, chunk);
    u64 begin = piece.address / kChunk * kChunk + (chunk - piece.first) * kChunk;
    u64 end = piece.address + piece.bytes;
    u64 last = begin + kChunk;
    crcs[chunk] = crc_of(tables, begin < piece.address ? piece.address : begin, last < end ? last : end);
  }
}
