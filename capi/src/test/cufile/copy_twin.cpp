// The kernel of libcufile.so.0 for the CPU, as the stand-in for CUDA's driver launches kernels: each block is one thread.
#include <algorithm>
#include <cstdint>

#define __global__
using std::min;

struct Dim {
  unsigned x;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
static thread_local Dim blockIdx, threadIdx, blockDim = {1};

#include "../../main/cufile/copy.cu"

// As cuda/src/testing/c/fake_cuda_kernels.h has it.
struct TwinKernel {
  unsigned long parameters, sizes[16];
  unsigned lanes;
  void *(*make)(unsigned warps);
  void (*drop)(void *block);
  void (*run)(void **arguments, void *block, unsigned number, unsigned blocks, unsigned thread, unsigned threads);
};

static void *make(unsigned) { return new char; }

static void drop(void *block) { delete static_cast<char *>(block); }

static void run(void **arguments, void *, unsigned number, unsigned, unsigned, unsigned) {
  blockIdx.x = number;
  gpunvme_cufile_copy(*static_cast<const GpunvmeCuFileCopy **>(arguments[0]), *static_cast<uint32_t *>(arguments[1]));
}

extern "C" const TwinKernel twin_gpunvme_cufile_copy = {2, {8, 4}, 256, make, drop, run};
