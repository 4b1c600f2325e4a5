"""A kernel of CuPy that reads an SSD by itself: each of its threads chooses a block, reads it and adds up its words.

The CPU does the same in its own memory and compares. The SSD is an embedded one, in memory of this process. Needs a GPU and CuPy.
"""

SOURCE = r"""
#include "gpunvme/gpunvme.cuh"
using namespace gpunvme;

// `data` has a block for each thread; it is registered under the number `buffer`, where it begins at `offset`.
extern "C" __global__ void sum_blocks(const Storage* storage, u32 buffer, u64 offset, const u64* data, u64* sums, u32* statuses) {
  u32 thread = blockIdx.x * blockDim.x + threadIdx.x;
  const Namespace& ns = storage->namespaces[0];
  u64 block = thread * 2654435761ull % ns.blocks;
  u64 place = static_cast<u64>(thread) << ns.block_shift;
  statuses[thread] = read(ns, storage->queue(ns, thread / 32), block, 1, storage->buffer(buffer, 0), offset + place);
  u64 words = (1ull << ns.block_shift) / sizeof(u64);
  u64 sum = 0;
  for (u64 i = 0; i < words && statuses[thread] == status::kSuccess; i++) {
    sum += data[thread * words + i];
  }
  sums[thread] = sum;
}
"""

THREADS = 1024
BLOCKS, WORDS = 4096, 512  # of 8 bytes


def main() -> None:
    import cupy
    import numpy

    import gpunvme

    contents = numpy.random.default_rng(1).integers(0, 2**64, (BLOCKS, WORDS), dtype=numpy.uint64)
    kernel = cupy.RawKernel(SOURCE, "sum_blocks", options=("-std=c++17", "-I" + gpunvme.include_dir()))
    data = cupy.zeros((THREADS, WORDS), cupy.uint64)
    sums = cupy.zeros(THREADS, cupy.uint64)
    statuses = cupy.zeros(THREADS, cupy.uint32)
    with gpunvme.Storage("sim:size=16MiB,lba=4096,latency=0", "gpu", write=True) as storage:
        storage.write(0, contents)
        with gpunvme.KernelStorage(storage) as kernels:
            buffer = kernels.register(data)
            stream = cupy.cuda.Stream(non_blocking=True)
            cupy.cuda.get_current_stream().synchronize()  # the zeros are there
            arguments = (numpy.uint64(kernels.device_handle), numpy.uint32(buffer.number), numpy.uint64(buffer.offset))
            with stream:
                kernel((THREADS // 128,), (128,), (*arguments, data, sums, statuses))
            kernels.wait(stream, timeout=20)
    assert not statuses.any(), f"status {int(statuses.max()):#x}"
    chosen = numpy.arange(THREADS, dtype=numpy.uint64) * numpy.uint64(2654435761) % numpy.uint64(BLOCKS)
    assert (sums.get() == contents[chosen].sum(axis=1, dtype=numpy.uint64)).all(), "the CPU came to other sums"
    print(f"{THREADS} threads read, all sums are right")


if __name__ == "__main__":
    main()
