// The device library for compilers that know no C++, such as Numba's: functions with C's names, numbers for arguments, and Numba's
// way to return a value (the first argument is where it goes, the result says whether an exception was raised).
//
//   nvcc -std=c++17 -arch=compute_75 -rdc=true -ptx -I INCLUDE device_functions.cu -o device_functions.ptx
//
// INCLUDE is what python -c 'import gpunvme; print(gpunvme.include_dir())' prints. For the linker's optimisations the same as
// LTO-IR: -dlto -arch=sm_75 -ltoir instead of -arch=compute_75 -ptx, if the GPU machine's nvJitLink is not older than this nvcc.
#include "gpunvme/gpunvme.cuh"

using namespace gpunvme;

static __device__ const Storage& storage_at(u64 handle) {
  return *reinterpret_cast<const Storage*>(handle);
}

static __device__ u32 warp_number() {
  return (blockIdx.x * blockDim.x + threadIdx.x) / 32;
}

// Reads blocks of an SSD to a registered buffer, any number of them; *status becomes 0, or why not (status.cuh).
extern "C" __device__ int gpunvme_device_read(u32* status, u64 handle, u64 ssd, u64 slba, u64 blocks, u64 buffer, u64 offset) {
  const Storage& storage = storage_at(handle);
  const Namespace& ns = storage.namespaces[ssd];
  *status = read(ns, storage.queue(ns, warp_number()), slba, blocks, storage.buffer(static_cast<u32>(buffer), static_cast<u32>(ssd)), offset);
  return 0;
}

// The same for what one command can read: smaller, and takes fewer registers.
extern "C" __device__ int gpunvme_device_read_one(u32* status, u64 handle, u64 ssd, u64 slba, u64 blocks, u64 buffer, u64 offset) {
  const Storage& storage = storage_at(handle);
  const Namespace& ns = storage.namespaces[ssd];
  *status = read_one(ns, storage.queue(ns, warp_number()), slba, blocks, storage.buffer(static_cast<u32>(buffer), static_cast<u32>(ssd)), offset);
  return 0;
}
