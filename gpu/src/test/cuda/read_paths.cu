// What calls of the library take of whoever makes them: a kernel for each, with nothing around it. test.d/ptx.sh has the limits.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

namespace {
__device__ u32 number() { return blockIdx.x * blockDim.x + threadIdx.x; }
}  // namespace

#define KERNEL(name) extern "C" __global__ void __launch_bounds__(256, 1) name

// ---- callers that are served

KERNEL(served_read_one)(const Storage* s, u32* out) {
  const Namespace& ns = s->namespaces[0];
  out[number()] = read_one(ns, s->served_queue(ns, number()), number() * 8ull, 8, s->buffer(0, 0), number() * 4096ull);
}

KERNEL(served_read)(const Storage* s, u64 blocks, u32* out) {
  const Namespace& ns = s->namespaces[0];
  out[number()] = read(ns, s->served_queue(ns, number()), number() * blocks, blocks, s->buffer(0, 0), number() * 4096ull);
}

KERNEL(served_read_set)(const Storage* s, const DeviceSet* set, u64 blocks, u32* out) {
  out[number()] = read(s->served_queues(number()), *set, number() * blocks, blocks, {0, number() * 4096ull});
}

KERNEL(served_read_set_one)(const Storage* s, const DeviceSet* set, u32* out) {
  out[number()] = read_one(s->served_queues(number()), *set, number() * 8ull, 8, {0, number() * 4096ull});
}

KERNEL(served_read_file)(const Storage* s, const DeviceFile* file, u64 bytes, u32* out) {
  out[number()] = read_file(s->served_queues(number()), *file, number() * bytes, bytes, {0, number() * bytes},
                            {1, number() * 4096ull});
}

KERNEL(served_read_warp)(const Storage* s, u64 blocks, u32* out) {
  const Namespace& ns = s->namespaces[0];
  u32 warp = number() / warp::kWidth;
  out[number()] = read_warp(ns, s->served_queue(ns, warp), warp * blocks, blocks, s->buffer(0, 0), warp * 4096ull);
}

KERNEL(served_read_warp_set)(const Storage* s, const DeviceSet* set, u64 blocks, u32* out) {
  u32 warp = number() / warp::kWidth;
  out[number()] = read_warp(s->served_queues(warp), *set, warp * blocks, blocks, {0, warp * 4096ull});
}

KERNEL(served_read_file_warp)(const Storage* s, const DeviceFile* file, u64 bytes, u32* out) {
  u32 warp = number() / warp::kWidth;
  out[number()] = read_file_warp(s->served_queues(warp), *file, warp * bytes, bytes, {0, warp * bytes}, {1, warp * 131072ull});
}

KERNEL(find_file)(const DeviceDirectory* directory, const char* paths, u32 bytes, const DeviceFile** out) {
  out[number()] = directory->find(paths + number() * bytes, bytes);
}

KERNEL(served_submit)(Queue* q, const Command* c, Token* tokens, u32* out) {
  out[number()] = ServedQueue(q).submit(c[number()], tokens[number()]);
}

KERNEL(served_wait)(Queue* q, Token* tokens, u32* out) { out[number()] = ServedQueue(q).wait(tokens[number()]); }

KERNEL(server)(const Storage* s, const u32* callers) { serve(*s, s->namespaces[0], block::index(), block::warps(), callers); }

// ---- callers that help

KERNEL(helping_read_one)(const Storage* s, u32* out) {
  const Namespace& ns = s->namespaces[0];
  out[number()] = read_one(ns, s->queue(ns, number()), number() * 8ull, 8, s->buffer(0, 0), number() * 4096ull);
}

KERNEL(helping_read)(const Storage* s, u64 blocks, u32* out) {
  const Namespace& ns = s->namespaces[0];
  out[number()] = read(ns, s->queue(ns, number()), number() * blocks, blocks, s->buffer(0, 0), number() * 4096ull);
}

KERNEL(helping_wait)(Queue* q, Token* tokens, u32* out) { out[number()] = SharedQueue(q).wait(tokens[number()]); }

// ---- arrays

// What a page that is there takes; Array has it inlined into each call.
KERNEL(array_hit)(PageCache* cache, const u64* pages, u32* out) {
  CachedPages<false> cached(cache);
  u32 lanes = warp::active();
  u32 group;
  u32 f;
  bool hit = cached.touch<false>(pages[number()], lanes, group, f);
  u32 value = hit ? mem::load_value(reinterpret_cast<const u32*>(cache->data(f))) : 0;
  cached.release_used(lanes, group, hit, f, value);
  out[number()] = value;
}

KERNEL(served_array_get)(const DeviceArray* array, u64* out) { out[number()] = ServedArray<u64>(array)[number()]; }

KERNEL(served_array_store)(const DeviceArray* array, u64* out) {
  out[number()] = ServedArray<u64>(array).store(number(), number());
}

KERNEL(served_array_pin)(const DeviceArray* array, u64* out) {
  ServedArray<u64> a(array);
  Span<u64, false> span = a.pin(number(), 32);
  out[number()] = span.size() != 0 ? span[0] : 0;
}

KERNEL(helping_array_get)(const DeviceArray* array, u64* out) { out[number()] = Array<u64>(array)[number()]; }
