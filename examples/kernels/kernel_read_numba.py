"""A kernel of Numba that reads an SSD by itself: each of its threads chooses a block, reads it and adds up its words.

The CPU does the same in its own memory and compares. The SSD is an embedded one, in memory of this process. Needs a GPU and Numba.

    python kernel_read_numba.py [LIBRARY]

LIBRARY is device_functions.cu, which says how it is compiled, as PTX or LTO-IR (.ltoir); without it nvcc makes one.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

THREADS = 1024
BLOCKS, WORDS = 4096, 512  # of 8 bytes


def compiled(folder: str) -> str:
    """The device functions, by nvcc."""
    import gpunvme

    library = f"{folder}/device_functions.ptx"
    source = Path(__file__).with_name("device_functions.cu")
    options = ["-std=c++17", "-arch=compute_75", "-rdc=true", "-ptx", "-I", gpunvme.include_dir()]
    subprocess.run(["nvcc", *options, source, "-o", library], check=True)
    return library


def main(library: str) -> None:
    import numpy
    from numba import cuda

    import gpunvme

    # Numbers are int64 throughout: together with unsigned ones Numba would make floats of them.
    read_one = cuda.declare_device("gpunvme_device_read_one", "uint32(int64, int64, int64, int64, int64, int64)")

    @cuda.jit(link=[library])
    def sum_blocks(storage, buffer, offset, data, sums, statuses):
        """`data` has a block for each thread; it is registered under the number `buffer`, where it begins at `offset`."""
        thread = cuda.grid(1)
        block = thread * 2654435761 % BLOCKS
        statuses[thread] = read_one(storage, 0, block, 1, buffer, offset + thread * WORDS * 8)
        total = 0
        if statuses[thread] == 0:
            for i in range(WORDS):
                total += data[thread, i]
        sums[thread] = total

    contents = numpy.random.default_rng(1).integers(-(2**63), 2**63, (BLOCKS, WORDS), dtype=numpy.int64)
    data = cuda.to_device(numpy.zeros((THREADS, WORDS), numpy.int64))
    sums = cuda.to_device(numpy.zeros(THREADS, numpy.int64))
    statuses = cuda.to_device(numpy.zeros(THREADS, numpy.uint32))
    with gpunvme.Storage("sim:size=16MiB,lba=4096,latency=0", "gpu", write=True) as storage:
        storage.write(0, contents)
        with gpunvme.KernelStorage(storage) as kernels:
            buffer = kernels.register(data)
            sum_blocks[THREADS // 128, 128](kernels.device_handle, buffer.number, buffer.offset, data, sums, statuses)
            kernels.wait(0, timeout=20)  # the default stream
    assert not statuses.copy_to_host().any(), f"status {int(statuses.copy_to_host().max()):#x}"
    chosen = numpy.arange(THREADS) * 2654435761 % BLOCKS
    assert (sums.copy_to_host() == contents[chosen].sum(axis=1)).all(), "the CPU came to other sums"
    print(f"{THREADS} threads read, all sums are right")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.TemporaryDirectory() as made:
            main(compiled(made))
