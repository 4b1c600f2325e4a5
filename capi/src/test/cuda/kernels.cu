// What kernels_test.c launches: on a GPU, and on the CPU that stands in for it.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

// Thread i reads block first + i of an SSD to its place in a buffer, behind `offset`.
extern "C" __global__ void read_blocks(
    const Storage* storage, u32 ssd, u32 buffer, u64 offset, u64 first, u32 count, Status* statuses) {
  u32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) {
    const Namespace& ns = storage->namespaces[ssd];
    u64 place = offset + (static_cast<u64>(i) << ns.block_shift);
    statuses[i] = read_one(ns, storage->queue(ns, i / 32), first + i, 1, storage->buffer(buffer, ssd), place);
  }
}

// Its scratch is the last block of the buffer, which has `end` bytes.
__device__ Status read(const Storage* storage, const DeviceFile& file, u32 buffer, u64 offset, u64 from, u64 bytes, u64 end) {
  u64 scratch = (end - (1ull << file.set->block_shift)) & ~3ull;
  return read_file(storage->queues(0), file, from, bytes, {buffer, offset}, {buffer, scratch});
}

// One thread reads bytes of a file.
extern "C" __global__ void read_bytes(
    const Storage* storage, const DeviceFile* file, u32 buffer, u64 offset, u64 from, u64 bytes, u64 end, Status* statuses) {
  statuses[0] = read(storage, *file, buffer, offset, from, bytes, end);
}

// One thread looks a file of so many bytes up and reads it; status::kArgument if there is none.
extern "C" __global__ void read_found(
    const Storage* storage, const DeviceDirectory* directory, const char* path, u32 buffer, u64 offset, u64 bytes, u64 end, Status* statuses) {
  const DeviceFile* file = directory->find(path);
  bool found = file != nullptr && file->size == bytes;
  statuses[0] = found ? read(storage, *file, buffer, offset, 0, bytes, end) : status::kArgument;
}
