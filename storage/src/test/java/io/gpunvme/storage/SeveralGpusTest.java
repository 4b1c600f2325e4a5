package io.gpunvme.storage;

import io.gpunvme.cuda.FakeDriver;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.queue.CpuCuda;

/** By the real kernels on the CPU, which is both GPUs. */
class SeveralGpusTest extends SeveralGpusContract {
  SeveralGpusTest() {
    super(
        FakeDriver.load(CpuCuda.library(2)).devices().stream().map(GpuAccelerator::open).toList(),
        5);
  }
}
