// Quantised elements become floats: computed in float, rounded after each operation as a CPU does it, then converted to the
// target's type. The layouts of blocks are those of ggml-common.h, the order of the operations that of ggml's Python package
// (gguf.quants). The CPU's compiler compiles this too, for a test.
#include "gpunvme/platform.cuh"

using namespace gpunvme;

// Filled in by CudaDequantizer.
struct Tensor {
  const u8* source;     // of blocks: a multiple of the highest power of two that divides their bytes, 16 at most
  void* target;         // a multiple of 16
  u64 elements;         // whole blocks
  const float* scales;  // by which elements that are their own blocks are multiplied; null: by none
  // Each scale is that of block_rows rows times block_columns columns of a matrix; the last ones of both may be cut.
  u64 columns;
  u64 block_rows;
  u64 block_columns;
  u64 scale_columns;  // scales from one row of them to the next
};

namespace {

using i8 = signed char;

// ------------------------------------------------------------------------------------------ floats

#if GPUNVME_GPU
// Never fused to one operation with one rounding.
__device__ float times(float a, float b) { return __fmul_rn(a, b); }
__device__ float minus(float a, float b) { return __fsub_rn(a, b); }

__device__ u32 bits_of(float f) { return __float_as_uint(f); }
__device__ float of_bits(u32 bits) { return __uint_as_float(bits); }

__device__ float from_half(u16 half) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(half));
  return f;
}

__device__ u16 to_half(float f) {
  u16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(f));
  return half;
}
#else
// To be compiled by -ffp-contract=off.
float times(float a, float b) { return a * b; }
float minus(float a, float b) { return a - b; }

u32 bits_of(float f) {
  u32 bits;
  __builtin_memcpy(&bits, &f, sizeof bits);
  return bits;
}

float of_bits(u32 bits) {
  float f;
  __builtin_memcpy(&f, &bits, sizeof f);
  return f;
}

float from_half(u16 half) {
  u32 sign = (half & 0x8000u) << 16;
  u32 rest = half & 0x7fffu;
  if (rest >= 0x7c00) {
    return of_bits(sign | 0x7f800000 | rest << 13);
  }
  // The exponents differ by 112, of subnormals too.
  return of_bits(sign | bits_of(of_bits(rest << 13) * 0x1p112f));
}

u16 to_half(float f) {
  u32 sign = bits_of(f) >> 16 & 0x8000;
  u32 rest = bits_of(f) & 0x7fffffff;
  if (rest > 0x7f800000) {
    return static_cast<u16>(sign | 0x7e00);
  }
  if (rest >= 0x477ff000) {  // 65520: half way to what would be the next
    return static_cast<u16>(sign | 0x7c00);
  }
  if (rest < 0x38800000) {  // 2^-14: below it are multiples of 2^-24, as the floats from 0.5 to 1 are
    return static_cast<u16>(sign | (bits_of(of_bits(rest) + 0.5f) - 0x3f000000));
  }
  return static_cast<u16>(sign | (rest - 0x38000000 + 0xfff + (rest >> 13 & 1)) >> 13);
}
#endif

struct F32 {
  using Bits = u32;
  static __device__ u32 of(float f) { return bits_of(f); }
};

struct F16 {
  using Bits = u16;
  static __device__ u16 of(float f) { return to_half(f); }
};

struct BF16 {
  using Bits = u16;
  // By hand: the oldest GPUs have no instruction for it.
  static __device__ u16 of(float f) {
    u32 bits = bits_of(f);
    if ((bits & 0x7fffffff) > 0x7f800000) {
      return 0x7fc0;
    }
    return static_cast<u16>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

// --------------------------------------------------------------------------------------- the target

// Elements that a thread stores at once, in 16 bytes, so that a warp's are one piece.
template <class Target>
constexpr u32 kUnit = 16 / sizeof(typename Target::Bits);

template <class Target>
__device__ Quad packed(const float (&v)[kUnit<Target>]) {
  u32 words[4];
#pragma unroll
  for (u32 i = 0; i < 4; i++) {
    if constexpr (kUnit<Target> == 4) {
      words[i] = Target::of(v[i]);
    } else {
      words[i] = Target::of(v[2 * i]) | static_cast<u32>(Target::of(v[2 * i + 1])) << 16;
    }
  }
  return {words[0], words[1], words[2], words[3]};
}

__device__ u64 threads() { return static_cast<u64>(gridDim.x) * blockDim.x; }
__device__ u64 thread() { return static_cast<u64>(blockIdx.x) * blockDim.x + threadIdx.x; }

// --------------------------------------------------------------------------------------- the source

// 4 or 8 bytes that are loaded at once.
template <u32 Count>
struct alignas(Count) Bytes {
  u32 words[Count / 4];

  // The i-th, with what follows it in the word.
  __device__ u32 from(u32 i) const { return words[i / 4] >> i % 4 * 8; }
};

template <u32 Count>
__device__ Bytes<Count> aligned(const u8* at) {
  return *reinterpret_cast<const Bytes<Count>*>(at);
}

__device__ u16 half_at(const u8* at) { return *reinterpret_cast<const u16*>(at); }

// The same where addresses are multiples of 2 only.
template <u32 Count>
__device__ Bytes<Count> by_halves(const u8* at) {
  Bytes<Count> bytes;
#pragma unroll
  for (u32 i = 0; i < Count / 4; i++) {
    bytes.words[i] = half_at(at + 4 * i) | static_cast<u32>(half_at(at + 4 * i + 2)) << 16;
  }
  return bytes;
}

template <u32 Count>
__device__ Bytes<Count> by_bytes(const u8* at) {
  Bytes<Count> bytes;
#pragma unroll
  for (u32 i = 0; i < Count / 4; i++) {
    bytes.words[i] = at[4 * i] | static_cast<u32>(at[4 * i + 1]) << 8 | static_cast<u32>(at[4 * i + 2]) << 16 |
                     static_cast<u32>(at[4 * i + 3]) << 24;
  }
  return bytes;
}

// ------------------------------------------------------------------------------------------- blocks

// Each reads Count of its elements, 4 or 8, from `first` on, a multiple of Count.

// half scale; 16 bytes of 4 bits: of elements 0 to 15 the lower ones
struct Q4_0 {
  static constexpr u32 kElements = 32;
  static constexpr u32 kBytes = 18;

  template <u32 Count>
  static __device__ void read(const u8* block, u32 first, float (&v)[Count]) {
    float d = from_half(half_at(block));
    Bytes<Count> quants = by_halves<Count>(block + 2 + first % 16);
    u32 shift = first / 16 * 4;
#pragma unroll
    for (u32 i = 0; i < Count; i++) {
      v[i] = times(d, static_cast<float>(static_cast<int>(quants.from(i) >> shift & 0xf) - 8));
    }
  }
};

// half scale; 32 bytes with signs
struct Q8_0 {
  static constexpr u32 kElements = 32;
  static constexpr u32 kBytes = 34;

  template <u32 Count>
  static __device__ void read(const u8* block, u32 first, float (&v)[Count]) {
    float d = from_half(half_at(block));
    Bytes<Count> quants = by_halves<Count>(block + 2 + first);
#pragma unroll
    for (u32 i = 0; i < Count; i++) {
      v[i] = times(static_cast<float>(static_cast<i8>(quants.from(i))), d);
    }
  }
};

// What Q4_K and Q5_K begin with: half scale and half minimum, and 6 bits of each for 8 groups of 32 elements. Of groups 0 to 3 they
// are in the bytes of y (scales) and z (minima); of 4 to 7 the lower 4 bits are in w, the others above those of 0 to 3.
class Group {
 public:
  __device__ Group(const u8* block, u32 group) {
    Quad head = *reinterpret_cast<const Quad*>(block);
    u32 shift = group % 4 * 8;
    u32 scale = head.y >> shift;
    u32 minimum = head.z >> shift;
    u32 low = head.w >> shift;
    bool first = group < 4;
    scale = first ? scale & 0x3f : (low & 0xf) | (scale >> 2 & 0x30);
    minimum = first ? minimum & 0x3f : (low >> 4 & 0xf) | (minimum >> 2 & 0x30);
    d = times(from_half(static_cast<u16>(head.x)), static_cast<float>(scale));
    m = times(from_half(static_cast<u16>(head.x >> 16)), static_cast<float>(minimum));
  }

  __device__ float of(u32 quant) const { return minus(times(d, static_cast<float>(quant)), m); }

 private:
  float d;
  float m;
};

// scales; 128 bytes of 4 bits: each 32 have the lower ones of a group and the upper ones of the next
struct Q4_K {
  static constexpr u32 kElements = 256;
  static constexpr u32 kBytes = 144;

  template <u32 Count>
  static __device__ void read(const u8* block, u32 first, float (&v)[Count]) {
    u32 group = first / 32;
    Group scales(block, group);
    Bytes<Count> quants = aligned<Count>(block + 16 + group / 2 * 32 + first % 32);
#pragma unroll
    for (u32 i = 0; i < Count; i++) {
      v[i] = scales.of(quants.from(i) >> group % 2 * 4 & 0xf);
    }
  }
};

// scales; 32 bytes with a fifth bit for each group; then as Q4_K
struct Q5_K {
  static constexpr u32 kElements = 256;
  static constexpr u32 kBytes = 176;

  template <u32 Count>
  static __device__ void read(const u8* block, u32 first, float (&v)[Count]) {
    u32 group = first / 32;
    Group scales(block, group);
    Bytes<Count> fifths = aligned<Count>(block + 16 + first % 32);
    Bytes<Count> quants = aligned<Count>(block + 48 + group / 2 * 32 + first % 32);
#pragma unroll
    for (u32 i = 0; i < Count; i++) {
      v[i] = scales.of((quants.from(i) >> group % 2 * 4 & 0xf) | (fifths.from(i) >> group & 1) << 4);
    }
  }
};

// 128 bytes of the lower 4 bits, 64 of the upper 2, 16 scales with signs, half scale. Each 128 elements have 64 bytes of the
// first (32 times 2 elements behind each other, the upper bits after them) and 32 of the second.
struct Q6_K {
  static constexpr u32 kElements = 256;
  static constexpr u32 kBytes = 210;

  template <u32 Count>
  static __device__ void read(const u8* block, u32 first, float (&v)[Count]) {
    u32 part = first / 128;
    float scale = static_cast<float>(static_cast<i8>(block[192 + first / 16]));
    float d = times(from_half(half_at(block + 208)), scale);
    Bytes<Count> low = by_halves<Count>(block + part * 64 + first % 64);
    Bytes<Count> high = by_halves<Count>(block + 128 + part * 32 + first % 32);
    u32 low_shift = first / 64 % 2 * 4;
    u32 high_shift = first / 32 % 4 * 2;
#pragma unroll
    for (u32 i = 0; i < Count; i++) {
      u32 quant = (low.from(i) >> low_shift & 0xf) | (high.from(i) >> high_shift & 3) << 4;
      v[i] = times(d, static_cast<float>(static_cast<int>(quant) - 32));
    }
  }
};

template <class Block, class Target>
__device__ void dequantize_blocks(const Tensor& t) {
  constexpr u32 kOfBlock = Block::kElements / kUnit<Target>;
  u64 units = t.elements / kUnit<Target>;
  for (u64 unit = thread(); unit < units; unit += threads()) {
    float v[kUnit<Target>];
    u32 first = static_cast<u32>(unit % kOfBlock) * kUnit<Target>;
    Block::read(t.source + unit / kOfBlock * Block::kBytes, first, v);
    static_cast<Quad*>(t.target)[unit] = packed<Target>(v);
  }
}

// ------------------------------------------------------------------------ elements of 8 bits, scales

struct I8 {
  static __device__ float of(u8 bits) { return static_cast<float>(static_cast<i8>(bits)); }
};

// 4 bits of exponent, no infinity
struct F8_E4M3 {
  static __device__ float of(u8 bits) {
    u32 rest = bits & 0x7f;
    // The exponents differ by 120, of subnormals too.
    u32 value = rest == 0x7f ? 0x7fc00000 : bits_of(times(of_bits(rest << 20), 0x1p120f));
    return of_bits((bits & 0x80u) << 24 | value);
  }
};

// 5 bits of exponent: the upper half of a half
struct F8_E5M2 {
  static __device__ float of(u8 bits) { return from_half(static_cast<u16>(bits << 8)); }
};

// Sooner by far if 32 bits are enough.
__device__ u64 divided(u64 a, u64 b) {
  return (a | b) >> 32 == 0 ? static_cast<u32>(a) / static_cast<u32>(b) : a / b;
}

// The scale of an element, and of those after it.
class Scales {
 public:
  __device__ Scales(const Tensor& tensor, u64 element) : t(tensor), row(divided(element, t.columns)) {
    u64 column = element - row * t.columns;
    u64 block = divided(column, t.block_columns);
    end = (block + 1) * t.block_columns;
    end = end < t.columns ? end : t.columns;
    left = end - column;
    scale = start_of_row() + block;
  }

  // How many elements from this one on have the same.
  __device__ u64 same() const { return left; }

  __device__ float value() const { return *scale; }

  // To the next element, which there is.
  __device__ void next() {
    if (--left > 0) {
      return;
    }
    scale++;
    if (end == t.columns) {
      row++;
      end = 0;
      scale = start_of_row();
    }
    left = t.columns - end < t.block_columns ? t.columns - end : t.block_columns;
    end += left;
  }

 private:
  __device__ const float* start_of_row() const { return t.scales + divided(row, t.block_rows) * t.scale_columns; }

  const Tensor& t;
  u64 row;
  u64 end;  // the first column that has another
  u64 left;
  const float* scale;
};

template <u32 Count>
__device__ void multiply(const Tensor& t, u64 first, float (&v)[Count]) {
  Scales scales(t, first);
  if (scales.same() >= Count) {
    float scale = scales.value();
#pragma unroll
    for (u32 i = 0; i < Count; i++) {
      v[i] = times(v[i], scale);
    }
    return;
  }
#pragma unroll
  for (u32 i = 0; i < Count; i++) {
    if (i > 0) {
      scales.next();
    }
    v[i] = times(v[i], scales.value());
  }
}

template <class Element, class Target>
__device__ void dequantize_elements(const Tensor& t) {
  constexpr u32 kCount = kUnit<Target>;
  bool is_aligned = reinterpret_cast<u64>(t.source) % kCount == 0;
  u64 units = t.elements / kCount;
  for (u64 unit = thread(); unit < units; unit += threads()) {
    const u8* at = t.source + unit * kCount;
    Bytes<kCount> bytes = is_aligned ? aligned<kCount>(at) : by_bytes<kCount>(at);
    float v[kCount];
#pragma unroll
    for (u32 i = 0; i < kCount; i++) {
      v[i] = Element::of(static_cast<u8>(bytes.from(i)));
    }
    if (t.scales != nullptr) {
      multiply(t, unit * kCount, v);
    }
    static_cast<Quad*>(t.target)[unit] = packed<Target>(v);
  }
  for (u64 rest = units * kCount + thread(); rest < t.elements; rest += threads()) {
    float v[1] = {Element::of(t.source[rest])};
    if (t.scales != nullptr) {
      multiply(t, rest, v);
    }
    static_cast<typename Target::Bits*>(t.target)[rest] = Target::of(v[0]);
  }
}

}  // namespace

#define KERNEL(name, how, Source, Target) \
  extern "C" __global__ void __launch_bounds__(256) gpunvme_dequantize_##name(Tensor t) { how<Source, Target>(t); }
#define KERNELS(name, how, Source)    \
  KERNEL(name##_f32, how, Source, F32) \
  KERNEL(name##_f16, how, Source, F16) \
  KERNEL(name##_bf16, how, Source, BF16)

KERNELS(q4_0, dequantize_blocks, Q4_0)
KERNELS(q8_0, dequantize_blocks, Q8_0)
KERNELS(q4_k, dequantize_blocks, Q4_K)
KERNELS(q5_k, dequantize_blocks, Q5_K)
KERNELS(q6_k, dequantize_blocks, Q6_K)
KERNELS(i8, dequantize_elements, I8)
KERNELS(f8_e4m3, dequantize_elements, F8_E4M3)
KERNELS(f8_e5m2, dequantize_elements, F8_E5M2)
