package io.gpunvme.gpu.transfer;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.queue.FakeGpu;
import io.gpunvme.gpu.queue.TransferKernel;
import io.gpunvme.gpu.queue.TwinKernel;

/** The real kernel, compiled for the CPU, in memory that only looks like a GPU's. */
class GpuInitiatorTwinTest extends GpuInitiatorContract {
  @Override
  Accelerator openAccelerator() {
    return new FakeGpu();
  }

  @Override
  TransferKernel loadKernel(Accelerator on) {
    return TwinKernel.load(TwinKernel.compile());
  }
}
