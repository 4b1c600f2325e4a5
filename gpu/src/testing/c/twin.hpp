// Kernels compiled for the CPU, as the stand-in for libcuda.so launches them: warps have one lane.
// Included after the words of CUDA C++ and the kernels.
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

// As cuda/src/testing/c/fake_cuda_kernels.h has it.
struct TwinKernel {
  unsigned long parameters, sizes[16];
  unsigned lanes;
  void* (*make)(unsigned warps);
  void (*drop)(void* block);
  void (*run)(void** arguments, void* block, unsigned number, unsigned blocks, unsigned thread, unsigned threads);
};

template <auto kernel, unsigned lanes>
struct TwinOf;

template <class... A, void (*kernel)(A...), unsigned lanes>
struct TwinOf<kernel, lanes> {
  static void* make(unsigned warps) { return new gpunvme::block::Twin(warps); }

  static void drop(void* block) { delete static_cast<gpunvme::block::Twin*>(block); }

  static void run(void** arguments, void* block, unsigned number, unsigned blocks, unsigned thread, unsigned threads) {
    blockIdx.x = number;
    gridDim.x = blocks;
    // What one thread here plays is one to the kernel, too.
    threadIdx.x = thread / lanes;
    blockDim.x = (threads + lanes - 1) / lanes;
    gpunvme::block::Member member(*static_cast<gpunvme::block::Twin*>(block), thread / lanes);
    call(arguments, std::index_sequence_for<A...>());
  }

  template <std::size_t... I>
  static void call(void** arguments, std::index_sequence<I...>) {
    kernel(*static_cast<std::remove_cv_t<std::remove_reference_t<A>>*>(arguments[I])...);
  }

  static constexpr TwinKernel describe() { return {sizeof...(A), {sizeof(A)...}, lanes, make, drop, run}; }
};

// A kernel; each thread of the CPU plays so many of the grid.
#define TWIN(kernel, lanes) extern "C" const TwinKernel twin_##kernel = TwinOf<kernel, lanes>::describe()
