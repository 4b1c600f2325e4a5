package io.gpunvme.gpu.transfer;

import io.gpunvme.gpu.accel.Accelerator;
import io.gpunvme.gpu.accel.GpuAccelerator;
import io.gpunvme.gpu.accel.TestGpu;
import io.gpunvme.gpu.queue.CudaTransferKernel;
import io.gpunvme.gpu.queue.TransferKernel;
import org.junit.jupiter.api.Tag;

/** On a GPU. */
@Tag("gpu")
class GpuInitiatorGpuTest extends GpuInitiatorContract {
  @Override
  Accelerator openAccelerator() {
    return TestGpu.open();
  }

  @Override
  TransferKernel loadKernel(Accelerator on) {
    return CudaTransferKernel.load((GpuAccelerator) on);
  }
}
